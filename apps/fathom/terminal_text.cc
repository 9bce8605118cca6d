#include "terminal_text.h"

#include <unistd.h>

#include "output.h"

namespace fathom::app {
namespace {

constexpr std::string_view kDim = "\033[2m";
constexpr std::string_view kCallColor = "\033[36m";
constexpr std::string_view kPlain = "\033[0m";
constexpr std::string_view kClearLine = "\r\033[K";

// What a model writes must not drive the terminal: control characters but \n and \t become visible.
std::string harmless(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
      out += '^';
      out += static_cast<char>(byte ^ 0x40);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

TerminalText::TerminalText(bool fold) : is_terminal_(isatty(STDOUT_FILENO) != 0), fold_(fold) {}

std::string TerminalText::folded() const {
  return "(thought in " + std::to_string(reasoning_words_) +
         (reasoning_words_ == 1 ? " word)" : " words)");
}

std::string TerminalText::change_to(Part part) {
  std::string out;
  if (part_ == Part::kReasoning) {
    if (is_terminal_) {
      if (fold_) out.append(kClearLine).append(kDim).append(folded());
      out += kPlain;
    } else if (!fold_ && part != Part::kNone) {
      out += "</think>";
    }
    if (part != Part::kNone && (is_terminal_ || !fold_)) {
      out += "\n\n";
      needs_newline_ = false;
    }
  } else if (part_ == Part::kCall && is_terminal_) {
    out += kPlain;
  }
  if (part != Part::kNone && needs_newline_) {
    out += '\n';
    needs_newline_ = false;
  }
  if (part == Part::kReasoning && !(fold_ && !is_terminal_)) {
    out += is_terminal_ ? kDim : "<think>";
  } else if (part == Part::kCall) {
    if (is_terminal_) out += kCallColor;
    out += "→ ";
  }
  part_ = part;
  return out;
}

Status TerminalText::show(const codec::OutputEvent& event) {
  using Kind = codec::OutputEvent::Kind;
  std::string out;
  const std::string text = is_terminal_ ? harmless(event.text) : event.text;
  switch (event.kind) {
    case Kind::kReasoning:
      if (text.empty()) return Status();
      if (part_ != Part::kReasoning) out += change_to(Part::kReasoning);
      for (const char c : text) {
        const bool is_space = c == ' ' || c == '\n' || c == '\t';
        if (!is_space && !in_word_) ++reasoning_words_;
        in_word_ = !is_space;
      }
      if (!fold_) {
        out += text;
      } else if (is_terminal_) {
        out.append(kClearLine).append(folded());
      }
      break;
    case Kind::kText:
      if (text.empty()) return Status();
      if (part_ != Part::kText) out += change_to(Part::kText);
      out += text;
      break;
    case Kind::kCallBegin:
      out += change_to(Part::kCall) + text + " ";
      break;
    case Kind::kArguments:
      out += text;
      break;
    case Kind::kCallEnd:
      if (!event.complete) out += " (cut)";
      break;
    case Kind::kStart:
    case Kind::kFinish:
      return Status();
  }
  if (out.empty()) return Status();
  needs_newline_ = out.back() != '\n';
  return print(out);
}

Status TerminalText::end() {
  std::string out = change_to(Part::kNone);
  if (needs_newline_) out += '\n';
  return out.empty() ? Status() : print(out);
}

}  // namespace fathom::app
