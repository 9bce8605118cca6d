// A split pattern, compiled to a deterministic automaton over classes of characters.
//
// The match is the one a backtracking engine finds first (leftmost, alternatives in their order,
// quantifiers greedy), but no text can make it backtrack: a match attempt reads each character
// once.  (A pattern whose attempts read far and then fail still costs a long text squared; those in
// use end in alternatives that match whatever was read.)  Idea: ordered threads in the subset
// construction, as in RE2 (Cox, "Regular Expression Matching in the Wild", 2010); here the whole
// automaton is built at load, within limits.
//
// Thread: any; immutable after compile().
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "codec/split_regex_parser.h"
#include "fathom/status.h"

namespace fathom::codec {

class SplitRegex {
 public:
  struct Match {
    size_t begin;
    size_t end;  // begin == end: no match in the rest of the text
  };

  // Patterns as split_regex_parser.h understands them.  Those that match the empty text, and those
  // whose automaton would be too large, are errors.
  static Result<SplitRegex> compile(std::string_view pattern);
  // Matches `text` itself, which must not be empty.
  static Result<SplitRegex> literal(std::string_view text);

  // The first match that begins at `from` or later.  `text` must be valid UTF-8 and `from` the
  // beginning of a character.
  Match find(std::string_view text, size_t from) const;

 private:
  friend class SplitRegexBuilder;
  static Result<SplitRegex> from_tree(const RegexTree& tree);

  // End of the match that begins at `from`, or `from`.
  size_t match_end(std::string_view text, size_t from) const;

  static constexpr uint16_t kDead = 0;
  static constexpr uint16_t kStart = 1;

  // Class of each character: ASCII directly, the others by blocks of 256.
  std::array<uint8_t, 128> ascii_classes_{};
  std::vector<uint16_t> blocks_;        // [0x1100] -> block number
  std::vector<uint8_t> block_classes_;  // [block][256]
  uint32_t stride_ = 0;                 // classes + 1; the last column is the end of the text
  // [state][class] -> next state << 1 | "a match ends before this character".
  std::vector<uint16_t> transitions_;
  // Whether a match can begin with a character whose first byte is this one (may err towards yes).
  std::array<bool, 256> can_begin_{};
};

}  // namespace fathom::codec
