// Streams an answer to the terminal or a pipe: reasoning dimmed on a terminal, in its tags
// elsewhere; each call of a tool on a line of its own: `→ name {"argument": "value"}`.
#pragma once

#include <string>

#include "codec/output/output_stream.h"
#include "fathom/status.h"

namespace fathom::app {

class TerminalText {
 public:
  // `fold`: of the reasoning only its length is shown, and nothing where this is no terminal.
  explicit TerminalText(bool fold = false);
  // Errors as print().
  Status show(const codec::OutputEvent& event);
  // Ends colours and the last line.
  Status end();

 private:
  enum class Part { kNone, kReasoning, kText, kCall };
  // Ends what was shown before and begins `part`.
  std::string change_to(Part part);
  std::string folded() const;

  bool is_terminal_;
  bool fold_;
  Part part_ = Part::kNone;
  bool needs_newline_ = false;
  size_t reasoning_words_ = 0;
  bool in_word_ = false;
};

}  // namespace fathom::app
