// Builds a Prompt: plain text and control tokens.  Private to the renderer.
//
// Thread: one at a time; one object a prompt.
#pragma once

#include <string_view>

#include "codec/prompt.h"

namespace fathom::codec {

class PromptWriter {
 public:
  explicit PromptWriter(const SpecialTokens& tokens) : tokens_(tokens) {}

  void text(std::string_view text) { prompt_.text.append(text); }
  // For writers of JSON, which append to a string.
  std::string* sink() { return &prompt_.text; }
  void control(std::string_view spelling);
  // Text of ours in which the default spellings of DSML and the think tags are control tokens.
  void template_text(std::string_view text);
  // The content of a message with the placeholders of its images.
  void content(const InputMessage& message);

  const SpecialTokens& tokens() const { return tokens_; }
  void reserve(size_t bytes) { prompt_.text.reserve(bytes); }

  // The prompt, or the first error of content().
  Result<Prompt> finish() &&;

 private:
  const SpecialTokens& tokens_;
  Prompt prompt_;
  Status error_;
};

}  // namespace fathom::codec
