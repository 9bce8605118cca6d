// Regular expressions as all of our users' dialects read them (ECMA-262, Python, PCRE2): read,
// checked, and written again in the few forms that the grammar compiler cannot misunderstand.
//
// A construct on which the dialects disagree gets the narrowest meaning: \d, \w and \s are ASCII,
// their complements leave out what Unicode adds to them, `.` is no line end.  So a match of what
// comes out is a match of the pattern in each dialect.  Matches are of the whole text; ^ and $ may
// only stand where that changes nothing.
//
// Thread: any; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/status.h"

namespace fathom::grammar {

struct CodeRange {
  uint32_t first, last;
};

// Where the text stands, and so which characters it cannot hold.
enum class RegexUse {
  kText,        // the answer itself
  kJsonString,  // between the quotes of JSON: nothing that would have to be escaped
  kDsmlString,  // a parameter's raw text: besides, no < (the end tag begins with one)
};

struct RegexNode {
  enum class Kind { kEmpty, kNever, kSet, kCat, kAlt, kRepeat, kBegin, kEnd };
  Kind kind = Kind::kEmpty;
  std::vector<CodeRange> set;   // kSet: sorted, apart, not empty
  std::vector<RegexNode> kids;  // kRepeat: one
  int64_t min = 0, max = 0;     // kRepeat; max -1: no end
};

// Length of matches in code points, and characters with every repetition written out.
struct RegexSize {
  int64_t min = 0, max = 0;  // max -1: no end
  int64_t states = 0;
};

class Regex {
 public:
  // Errors (kInvalidArgument): no regular expression, something that cannot be held to
  // (look-around, back references, flags, \b, \p, anchors within), too deep or too large.
  static Result<Regex> parse(std::string_view pattern, RegexUse use);

  RegexSize size() const;
  // Keeps matches of `min` to `max` (-1: no end) code points.  Error: that is no regex of the same
  // kind; only patterns with at most one repetition of a single character can be cut to a length.
  Status limit_length(int64_t min, int64_t max);
  // No text matches.
  bool is_never() const { return root_.kind == RegexNode::Kind::kNever; }
  // The pattern has no $ at its end, so a search with it would find it in longer texts too.
  bool is_open_ended() const { return open_ended_; }
  // The ASCII text with which every match begins, and whether the pattern demands it of the text's
  // beginning (^).
  std::string prefix() const;
  bool is_anchored() const { return anchored_; }

  // ASCII; only literals, classes, (?:...), | and quantifiers.
  std::string canonical() const;

 private:
  RegexNode root_;
  bool open_ended_ = true;
  bool anchored_ = false;
};

}  // namespace fathom::grammar
