// Streams an answer to the terminal or a pipe: reasoning dimmed on a terminal, in its tags
// elsewhere.
#pragma once

#include "answer.h"

namespace fathom::app {

class TerminalText {
 public:
  // `thinking`: the answer begins with reasoning.
  explicit TerminalText(bool thinking);
  // Errors as print().
  Status show(const AnswerPiece& piece);
  // Ends colours and the last line.
  Status end();

 private:
  bool is_terminal_;
  bool in_reasoning_ = false;
  bool needs_newline_ = false;
  bool wrote_reasoning_ = false;
};

}  // namespace fathom::app
