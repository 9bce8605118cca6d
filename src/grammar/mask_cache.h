// Masks of one grammar by the state of the matcher (state_key.h).  Answers come by the same states
// again and again (within a string, after every field), and a mask costs far more than a copy.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace fathom::grammar {

class MaskCache {
 public:
  // Keeps at least the masks used last that fit into half of `max_bytes`, and never more than
  // `max_bytes`.
  explicit MaskCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  enum class Found { kNothing, kMask, kBeginning };

  // Copies the mask of `key` to `mask`, if that is not empty.  kBeginning: the masks of such states
  // depend on more, longer keys have them.
  Found find(std::span<const int32_t> key, std::span<uint32_t> mask);
  void insert(std::span<const int32_t> key, std::span<const uint32_t> mask);
  // From now on `key` is the beginning of others.
  void insert_beginning(std::span<const int32_t> key) { insert(key, {}); }
  int64_t bytes() const;

 private:
  using Key = std::vector<int32_t>;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::span<const int32_t> key) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(std::span<const int32_t> a, std::span<const int32_t> b) const;
  };
  // The mask is empty where the key is a beginning.
  using Masks = std::unordered_map<Key, std::vector<uint32_t>, Hash, Equal>;

  void make_room(size_t bytes);

  const size_t max_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  // When the recent ones fill half of the room, they become the old ones, and the old ones go.
  Masks recent_, old_;
  size_t recent_bytes_ = 0, old_bytes_ = 0;
};

}  // namespace fathom::grammar
