#include "grammar/mask_cache.h"

#include <algorithm>
#include <utility>

namespace fathom::grammar {
namespace {

size_t size_of(std::span<const int32_t> key, std::span<const uint32_t> mask) {
  constexpr size_t kNodeBytes = 96;
  return key.size_bytes() + mask.size_bytes() + kNodeBytes;
}

}  // namespace

size_t MaskCache::Hash::operator()(std::span<const int32_t> key) const {
  uint64_t hash = key.size();
  for (const int32_t word : key) {
    hash = (hash ^ static_cast<uint32_t>(word)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

bool MaskCache::Equal::operator()(std::span<const int32_t> a, std::span<const int32_t> b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void MaskCache::make_room(size_t bytes) {
  if (recent_bytes_ + bytes <= max_bytes_ / 2) return;
  old_ = std::exchange(recent_, {});
  old_bytes_ = std::exchange(recent_bytes_, 0);
}

MaskCache::Found MaskCache::find(std::span<const int32_t> key, std::span<uint32_t> mask) {
  const std::lock_guard lock(mutex_);
  auto found = recent_.find(key);
  if (found == recent_.end()) {
    const auto old = old_.find(key);
    if (old == old_.end()) return Found::kNothing;
    const size_t bytes = size_of(old->first, old->second);
    auto node = old_.extract(old);
    old_bytes_ -= bytes;
    make_room(bytes);
    recent_bytes_ += bytes;
    found = recent_.insert(std::move(node)).position;
  }
  if (found->second.empty()) return Found::kBeginning;
  if (!mask.empty()) std::copy(found->second.begin(), found->second.end(), mask.begin());
  return Found::kMask;
}

void MaskCache::insert(std::span<const int32_t> key, std::span<const uint32_t> mask) {
  const size_t bytes = size_of(key, mask);
  if (bytes > max_bytes_ / 2) return;
  // The copies are made before the lock: others wait for it on their way to a mask.
  Key own_key(key.begin(), key.end());
  std::vector<uint32_t> own_mask(mask.begin(), mask.end());
  const std::lock_guard lock(mutex_);
  make_room(bytes);
  if (recent_.try_emplace(std::move(own_key), std::move(own_mask)).second) recent_bytes_ += bytes;
}

int64_t MaskCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(recent_bytes_ + old_bytes_);
}

}  // namespace fathom::grammar
