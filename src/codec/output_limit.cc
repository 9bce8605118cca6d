#include "codec/output_limit.h"

#include <algorithm>
#include <string>

namespace fathom::codec {

namespace {

uint32_t default_max_tokens(const Conversation& conversation) {
  if (!conversation.thinking) return 8192;
  return conversation.effort == Effort::kMax ? 131072 : 65536;
}

// The wording is that of the official API, which clients know.
Status too_long(int64_t prompt_tokens, int64_t context_limit, int64_t max_tokens) {
  return Status(StatusCode::kInvalidArgument,
                "This model's maximum context length is " + std::to_string(context_limit) +
                    " tokens. However, you requested " +
                    std::to_string(prompt_tokens + max_tokens) + " tokens (" +
                    std::to_string(prompt_tokens) + " in the messages, " +
                    std::to_string(max_tokens) +
                    " in the completion). Please reduce the length of the messages or completion.");
}

}  // namespace

Result<uint32_t> resolve_max_tokens(const ConversationRequest& request,
                                    const ConvertOptions& options, int64_t prompt_tokens,
                                    int64_t context_limit) {
  const int64_t room = context_limit - prompt_tokens;
  const std::optional<uint32_t> asked = request.inference.max_tokens;
  if (room < std::max<int64_t>(asked.value_or(0), 1)) {
    return too_long(prompt_tokens, context_limit, asked.value_or(0));
  }
  if (asked) return *asked;
  const uint32_t bound =
      request.conversation.thinking ? options.thinking_max_tokens : options.non_thinking_max_tokens;
  const uint32_t limit = std::min(default_max_tokens(request.conversation), bound);
  return static_cast<uint32_t>(std::min<int64_t>(limit, room));
}

}  // namespace fathom::codec
