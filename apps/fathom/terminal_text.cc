#include "terminal_text.h"

#include <unistd.h>

#include "output.h"

namespace fathom::app {

TerminalText::TerminalText(bool thinking)
    : is_terminal_(isatty(STDOUT_FILENO) != 0), in_reasoning_(thinking) {}

Status TerminalText::show(const AnswerPiece& piece) {
  std::string out;
  if (!piece.reasoning.empty()) {
    if (!wrote_reasoning_) out += is_terminal_ ? "\033[2m" : "<think>";
    wrote_reasoning_ = true;
    out += piece.reasoning;
  }
  if (!piece.text.empty()) {
    if (in_reasoning_ && wrote_reasoning_) out += is_terminal_ ? "\033[0m\n\n" : "</think>\n\n";
    in_reasoning_ = false;
    out += piece.text;
  }
  if (out.empty()) return Status();
  needs_newline_ = out.back() != '\n';
  return print(out);
}

Status TerminalText::end() {
  std::string out;
  if (in_reasoning_ && wrote_reasoning_ && is_terminal_) out += "\033[0m";
  if (needs_newline_) out += '\n';
  return out.empty() ? Status() : print(out);
}

}  // namespace fathom::app
