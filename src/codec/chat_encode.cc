#include "codec/chat_prompt.h"
#include "codec/tokenizer.h"

namespace fathom::codec {

Result<std::vector<int32_t>> encode_chat(const Tokenizer& tokenizer,
                                         std::span<const ChatMessage> messages, Think think) {
  FATHOM_ASSIGN(const std::vector<PromptPiece> pieces, render_chat(messages, think));
  std::vector<int32_t> ids;
  for (const PromptPiece& piece : pieces) {
    if (!piece.is_control) {
      tokenizer.encode_append(piece.text, /*recognize_added=*/false, &ids);
      continue;
    }
    const std::optional<int32_t> id = tokenizer.find(piece.text);
    if (!id || !tokenizer.is_added(*id)) {
      return Status(
          StatusCode::kFailedPrecondition,
          "the tokenizer has no control token " + piece.text +
              ", so it is not one of DeepSeek-V4.1; only raw prompts can be used with it");
    }
    ids.push_back(*id);
  }
  return ids;
}

}  // namespace fathom::codec
