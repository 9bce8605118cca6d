#include "codec/split_regex_chars.h"

#include <algorithm>

namespace fathom::codec {

CharSet CharSet::of_categories(CategoryMask mask) {
  CharSet set;
  for (const CategoryRun& run : category_runs()) {
    if (mask >> static_cast<int>(run.category) & 1) set.add(run.first, run.last);
  }
  set.normalize();
  return set;
}

CharSet CharSet::white_space() {
  CharSet set;
  set.add(white_space_ranges());
  return set;
}

CharSet CharSet::word() {
  CharSet set = of_categories(category_mask("L") | category_mask("M") | category_mask("Nd") |
                              category_mask("Nl") | category_mask("Pc"));
  set.add(alphabetic_symbol_ranges());
  set.normalize();
  return set;
}

void CharSet::add(std::span<const CodePointRange> ranges) {
  ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
}

void CharSet::add_ascii_case_variants() {
  normalize();
  constexpr uint32_t kLongS = 0x17F;
  constexpr uint32_t kKelvin = 0x212A;
  CharSet more;
  for (uint32_t lower = 'a'; lower <= 'z'; ++lower) {
    const uint32_t upper = lower - 'a' + 'A';
    const bool has = contains(lower) || contains(upper) || (lower == 's' && contains(kLongS)) ||
                     (lower == 'k' && contains(kKelvin));
    if (!has) continue;
    more.add(lower, lower);
    more.add(upper, upper);
    if (lower == 's') more.add(kLongS, kLongS);
    if (lower == 'k') more.add(kKelvin, kKelvin);
  }
  add(more);
  normalize();
}

void CharSet::negate() {
  normalize();
  std::vector<CodePointRange> rest;
  uint32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) rest.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kMaxCodePoint) rest.push_back({next, kMaxCodePoint});
  ranges_ = std::move(rest);
}

void CharSet::normalize() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  std::vector<CodePointRange> joined;
  for (const CodePointRange& range : ranges_) {
    if (!joined.empty() && range.first <= joined.back().last + 1) {
      joined.back().last = std::max(joined.back().last, range.last);
    } else {
      joined.push_back(range);
    }
  }
  ranges_ = std::move(joined);
}

bool CharSet::contains(uint32_t code_point) const {
  const auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), code_point,
      [](uint32_t point, const CodePointRange& range) { return point < range.first; });
  return after != ranges_.begin() && code_point <= std::prev(after)->last;
}

}  // namespace fathom::codec
