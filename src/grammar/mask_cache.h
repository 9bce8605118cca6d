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

  // Copies the mask of `key` to `mask`; false: there is none.
  bool find(std::span<const int32_t> key, std::span<uint32_t> mask);
  bool has(std::span<const int32_t> key) const;
  void insert(std::span<const int32_t> key, std::span<const uint32_t> mask);
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
  using Masks = std::unordered_map<Key, std::vector<uint32_t>, Hash, Equal>;

  void make_room(size_t bytes);

  const size_t max_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  // When the recent ones fill half of the room, they become the old ones, and the old ones go.
  Masks recent_, old_;
  size_t recent_bytes_ = 0, old_bytes_ = 0;
};

}  // namespace fathom::grammar
