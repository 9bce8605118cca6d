// Sets of code points, as the classes of a split pattern name them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/unicode_table.h"

namespace fathom::codec {

class CharSet {
 public:
  static CharSet of_categories(CategoryMask mask);
  static CharSet white_space();
  // Letters, marks, decimal digits, letter numbers, connector punctuation, circled letters: \w.
  static CharSet word();

  void add(uint32_t first, uint32_t last) { ranges_.push_back({first, last}); }
  void add(std::span<const CodePointRange> ranges);
  void add(const CharSet& other) { add(other.ranges_); }
  // Adds the other case of each ASCII letter, and the two characters outside of ASCII that fold to
  // one (long s, Kelvin sign).
  void add_ascii_case_variants();
  void negate();
  // Sorts and joins the ranges; every reader below needs it first.
  void normalize();

  bool empty() const { return ranges_.empty(); }
  bool contains(uint32_t code_point) const;
  // Ascending, disjoint, not touching, after normalize().
  std::span<const CodePointRange> ranges() const { return ranges_; }
  bool operator==(const CharSet&) const = default;

 private:
  std::vector<CodePointRange> ranges_;
};

}  // namespace fathom::codec
