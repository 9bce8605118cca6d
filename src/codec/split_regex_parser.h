// Reads the patterns of tokenizer.json (Oniguruma syntax) into a tree.
//
// Understood: literals, escapes, classes (ranges, nested, negated, \p{L} \P{Lu} \s \S \d \D \w \W),
// `.`, groups, (?:..), (?i:..) on ASCII, alternation, ? * + {m,n} and their lazy forms, and
// look-ahead (?=..)
// (?!..) at one character.  Everything else is an error that names the construct and its place: a
// pattern that we read differently would give wrong ids in silence.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "codec/split_regex_chars.h"
#include "fathom/status.h"

namespace fathom::codec {

struct RegexNode {
  enum class Kind { kEmpty, kSet, kSequence, kAlternatives, kRepeat, kLookAhead };
  static constexpr int kUnlimited = -1;

  Kind kind = Kind::kEmpty;
  uint32_t set = 0;                // kSet, kLookAhead: index into RegexTree::sets
  bool negated = false;            // kLookAhead: (?!..)
  bool greedy = true;              // kRepeat
  int min = 0;                     // kRepeat
  int max = kUnlimited;            // kRepeat
  std::vector<uint32_t> children;  // indices into RegexTree::nodes
};

struct RegexTree {
  std::vector<RegexNode> nodes;
  uint32_t root = 0;
  std::vector<CharSet> sets;  // normalized, all different
};

inline constexpr size_t kMaxPatternBytes = 8192;
inline constexpr int kMaxPatternNesting = 64;
inline constexpr int kMaxRepeat = 256;

// `pattern` must be valid UTF-8.
Result<RegexTree> parse_split_regex(std::string_view pattern);
// The tree that matches exactly `text`, without any syntax.
Result<RegexTree> literal_split_regex(std::string_view text);

}  // namespace fathom::codec
