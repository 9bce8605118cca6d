// General categories of Unicode 16.0, the version with which the tokenizers that we read were made;
// another version splits text that has newer letters differently.
//
// Thread: any; constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fathom::codec {

inline constexpr uint32_t kMaxCodePoint = 0x10FFFF;

// The order is that of tools/make_unicode_table.py; groups (L, M, ...) are adjacent.
enum class GeneralCategory : uint8_t {
  kLu,
  kLl,
  kLt,
  kLm,
  kLo,  // letters
  kMn,
  kMc,
  kMe,  // marks
  kNd,
  kNl,
  kNo,  // numbers
  kPc,
  kPd,
  kPs,
  kPe,
  kPi,
  kPf,
  kPo,  // punctuation
  kSm,
  kSc,
  kSk,
  kSo,  // symbols
  kZs,
  kZl,
  kZp,  // separators
  kCc,
  kCf,
  kCs,
  kCo,
  kCn,  // control, format, surrogate, private, unassigned
};

// Sets of categories: bit 1 << category.
using CategoryMask = uint32_t;

// Of "L", "Lu", "P", ...; 0 if Unicode has no such category.
CategoryMask category_mask(std::string_view name);

// One maximal run of code points of one category, first and last included.
struct CategoryRun {
  uint32_t first;
  uint32_t last;
  GeneralCategory category;
};

// All runs, ascending, without gaps: U+0000 to U+10FFFF.
std::span<const CategoryRun> category_runs();

// A range of code points, first and last included.
struct CodePointRange {
  uint32_t first;
  uint32_t last;
  bool operator==(const CodePointRange&) const = default;
};

// The property White_Space, which is what \s means.
std::span<const CodePointRange> white_space_ranges();
// What counts as part of a word beyond letters, marks, decimal digits, letter numbers and connector
// punctuation: circled and squared letters, which are symbols by category.
std::span<const CodePointRange> alphabetic_symbol_ranges();

}  // namespace fathom::codec
