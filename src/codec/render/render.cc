#include "codec/prompt.h"
#include "codec/render/versions.h"

namespace fathom::codec {

size_t estimate_prompt_bytes(const Conversation& conversation) {
  constexpr size_t kFixedBytes = 4096;
  constexpr size_t kTurnBytes = 64;
  size_t bytes = kFixedBytes;
  for (const InputMessage& message : conversation.messages) {
    bytes += kTurnBytes + message.content.size();
    if (message.reasoning_content) bytes += message.reasoning_content->size();
    for (const ToolCall& call : message.tool_calls) bytes += 2 * kTurnBytes + call.arguments.size();
  }
  return bytes;
}

Result<Prompt> render_prompt(const Conversation& conversation, const RenderOptions& options) {
  return options.version == ModelVersion::kV4Pro ? render_v4(conversation, options)
                                                 : render_v41(conversation, options);
}

}  // namespace fathom::codec
