// Finds the stop sequence whose last byte comes first; of several that end there, the first of the
// list (recipe.md 4.2).  One Knuth-Morris-Pratt automaton a sequence; a byte that begins none and
// continues none costs one table look-up.
//
// Thread: one.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::codec {

class StopMatcher {
 public:
  // Empty sequences are left out.
  explicit StopMatcher(const std::vector<std::string>& sequences);

  bool empty() const { return patterns_.empty(); }
  bool contains(std::string_view sequence) const;
  void reset();
  // Takes the next byte; the sequence that ends with it, if one does.  Valid as long as this
  // object.
  const std::string* advance(char byte);
  // Bytes at the end that could be the beginning of a sequence.
  size_t held() const { return held_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> fallback;  // [i]: longest proper border of the first i + 1 bytes
    size_t length = 0;
  };
  std::vector<Pattern> patterns_;
  std::array<bool, 256> begins_{};
  size_t held_ = 0;
};

}  // namespace fathom::codec
