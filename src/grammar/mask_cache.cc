#include "grammar/mask_cache.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace fathom::grammar {
namespace {

size_t size_of(std::span<const int32_t> part, const PackedMask& mask) {
  constexpr size_t kNodeBytes = 120;
  return part.size_bytes() + mask.size_bytes() + kNodeBytes;
}

// The walk ahead (state_walk.h) has a low priority and may be put aside while it holds the lock;
// a step must not wait for that.
bool lock_soon(std::unique_lock<std::mutex>& lock) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    if (lock.try_lock()) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

size_t MaskCache::Hash::operator()(const PartOfKey& key) const {
  uint64_t hash = key.behind;
  for (const int32_t word : key.words) {
    hash = (hash ^ static_cast<uint32_t>(word)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

bool MaskCache::Equal::operator()(const PartOfKey& a, const PartOfKey& b) const {
  return a.behind == b.behind && std::ranges::equal(a.words, b.words);
}

MaskCache::Entries MaskCache::make_room(size_t bytes) {
  Entries dropped;
  if (recent_bytes_ + bytes > max_bytes_ / 2) {
    dropped = std::exchange(old_, std::exchange(recent_, {}));
    old_bytes_ = std::exchange(recent_bytes_, 0);
  }
  recent_bytes_ += bytes;
  bytes_ = static_cast<int64_t>(recent_bytes_ + old_bytes_);
  return dropped;
}

MaskCache::Found MaskCache::find(uint64_t behind, std::span<const int32_t> part,
                                 std::span<uint32_t> mask) {
  const PartOfKey key{behind, part};
  Entries dropped;  // freed without the lock
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!lock_soon(lock)) return {};
  auto found = recent_.find(key);
  if (found == recent_.end()) {
    const auto old = old_.find(key);
    if (old == old_.end()) return {};
    const size_t bytes = size_of(old->first.words, old->second.mask);
    auto node = old_.extract(old);
    old_bytes_ -= bytes;
    dropped = make_room(bytes);
    found = recent_.insert(std::move(node)).position;
  }
  const Entry& entry = found->second;
  if (entry.mask.empty()) return {Kind::kBeginning, entry.number};
  if (!mask.empty()) entry.mask.unpack(mask);
  return {Kind::kMask, 0};
}

void MaskCache::insert(uint64_t behind, std::span<const int32_t> part,
                       std::span<const uint32_t> mask) {
  (void)insert(behind, part, Entry{PackedMask(mask), 0});
}

std::optional<uint64_t> MaskCache::insert_beginning(uint64_t behind,
                                                    std::span<const int32_t> part) {
  return insert(behind, part, Entry{});
}

std::optional<uint64_t> MaskCache::insert(uint64_t behind, std::span<const int32_t> part,
                                          Entry entry) {
  // The copies are made before the lock: others wait for it on their way to a mask.
  Key key{behind, {part.begin(), part.end()}};
  const size_t bytes = size_of(part, entry.mask);
  Entries dropped;  // freed without the lock
  std::unique_lock lock(mutex_, std::defer_lock);
  if (bytes > max_bytes_ / 2 || !lock_soon(lock)) return std::nullopt;
  if (const auto known = recent_.find(PartOfKey{behind, part}); known != recent_.end()) {
    const bool is_beginning = known->second.mask.empty();
    return is_beginning ? std::optional(known->second.number) : std::nullopt;
  }
  if (entry.mask.empty()) entry.number = ++num_beginnings_;
  dropped = make_room(bytes);
  const uint64_t number = entry.number;
  recent_.emplace(std::move(key), std::move(entry));
  return number;
}

}  // namespace fathom::grammar
