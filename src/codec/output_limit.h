// How many tokens a request may generate.
#pragma once

#include <cstdint>

#include "codec/chat_prompt.h"
#include "fathom/status.h"

namespace fathom::codec {

// Tokens generated at most if the request does not say: 8,192 without thinking, 65,536 with,
// 131,072 with the most effort.
int32_t default_max_tokens(Think think);

// The limit in tokens of a request of `prompt_tokens` within a context of `context_limit`.
// `max_tokens` 0: not given, so the default, clipped to what is left.  Error: prompt and requested
// tokens do not fit, or the prompt leaves no room for one token.
Result<int32_t> resolve_max_tokens(int64_t prompt_tokens, int64_t context_limit, int32_t max_tokens,
                                   Think think);

}  // namespace fathom::codec
