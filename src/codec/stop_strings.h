// Finds stop strings in text that arrives in pieces.
//
// The text of an answer ends before the first stop string in it: the one whose last byte comes
// first, and of several that end there the longest.  Text that may be the beginning of a stop
// string is held back until it is known, so what was handed out is never taken back, and how the
// text was cut into pieces never changes the result. Each byte costs O(number of stop strings)
// (Knuth, Morris, Pratt 1977).
//
// Thread: one at a time; one object an answer.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fathom/status.h"

namespace fathom::codec {

inline constexpr size_t kMaxStopStrings = 16;
inline constexpr size_t kMaxStopStringBytes = 4096;

class StopStringFinder {
 public:
  // Error: too many, an empty or too long one, or one that is not UTF-8.  None at all is legal: all
  // text passes.
  static Result<StopStringFinder> create(std::span<const std::string> stop_strings);

  // Takes the next piece of text and returns what can be shown by now.  After a match everything is
  // dropped.
  std::string push(std::string_view piece);
  // The end of the answer: returns the text that was held back, or nothing after a match.
  std::string finish();

  // The index of the stop string that was found.
  std::optional<size_t> matched() const { return matched_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> fallback;  // [i]: longest proper border of the first i + 1 bytes
    size_t length = 0;             // bytes of `text` that the end of the answer so far equals
  };

  explicit StopStringFinder(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}
  static void advance(Pattern& pattern, char byte);

  std::vector<Pattern> patterns_;
  std::string held_;
  std::optional<size_t> matched_;
};

}  // namespace fathom::codec
