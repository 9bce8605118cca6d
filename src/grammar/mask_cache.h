// Masks of one grammar by the state of the matcher (state_key.h).  Answers come by the same states
// again and again (within a string, after every field), and a mask costs far more than a copy.
// Keys are kept as a tree, since many begin alike.
//
// Thread: any.  When another one holds the lock for long, nothing is found or kept.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/packed_mask.h"

namespace fathom::grammar {

class MaskCache {
 public:
  // Keeps at least the masks used last that fit into half of `max_bytes`, and never more than
  // `max_bytes`.
  explicit MaskCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  enum class Kind { kNothing, kMask, kBeginning };
  struct Found {
    Kind kind = Kind::kNothing;
    uint64_t number = 0;  // of a beginning
  };
  static constexpr uint64_t kRoot = 0;

  // A state is found part by part of its key: the first one behind kRoot, the next ones behind the
  // beginning found before.  Copies the mask to `mask`, if that is not empty.  kBeginning: the
  // masks of such states depend on more.
  Found find(uint64_t behind, std::span<const int32_t> part, std::span<uint32_t> mask);
  void insert(uint64_t behind, std::span<const int32_t> part, std::span<const uint32_t> mask);
  // From now on this is the beginning of others; returns its number.  Nothing: it is not kept.
  std::optional<uint64_t> insert_beginning(uint64_t behind, std::span<const int32_t> part);
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct PartOfKey {
    uint64_t behind;
    std::span<const int32_t> words;
  };
  struct Key {
    uint64_t behind;
    std::vector<int32_t> words;
    operator PartOfKey() const { return {behind, words}; }
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(const PartOfKey& key) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const PartOfKey& a, const PartOfKey& b) const;
  };
  struct Entry {
    PackedMask mask;      // empty: a beginning,
    uint64_t number = 0;  // which has one
  };
  using Entries = std::unordered_map<Key, Entry, Hash, Equal>;

  std::optional<uint64_t> insert(uint64_t behind, std::span<const int32_t> part, Entry entry);
  // Adds to the recent ones, and returns what had to go.
  Entries make_room(size_t bytes);

  const size_t max_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  // When the recent ones fill half of the room, they become the old ones, and the old ones go.
  Entries recent_, old_;
  size_t recent_bytes_ = 0, old_bytes_ = 0;
  uint64_t num_beginnings_ = 0;
  std::atomic<int64_t> bytes_ = 0;  // of both; changed under the lock
};

}  // namespace fathom::grammar
