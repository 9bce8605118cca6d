#include "codec/output_limit.h"

#include <algorithm>
#include <string>

namespace fathom::codec {

int32_t default_max_tokens(Think think) {
  if (think == Think::kOff) return 8192;
  return think == Think::kMax ? 131072 : 65536;
}

Result<int32_t> resolve_max_tokens(int64_t prompt_tokens, int64_t context_limit, int32_t max_tokens,
                                   Think think) {
  const int64_t room = context_limit - prompt_tokens;
  if (room < std::max(max_tokens, 1)) {
    // The wording is that of the official API, which clients know.
    return Status(StatusCode::kInvalidArgument,
                  "This model's maximum context length is " + std::to_string(context_limit) +
                      " tokens. However, you requested " +
                      std::to_string(prompt_tokens + max_tokens) + " tokens (" +
                      std::to_string(prompt_tokens) + " in the messages, " +
                      std::to_string(max_tokens) +
                      " in the completion). Please reduce the length of the messages or "
                      "completion.");
  }
  if (max_tokens > 0) return max_tokens;
  return static_cast<int32_t>(std::min<int64_t>(default_max_tokens(think), room));
}

}  // namespace fathom::codec
