// How many tokens a request may generate.
#pragma once

#include <cstdint>

#include "codec/request.h"
#include "fathom/status.h"

namespace fathom::codec {

// The limit in tokens of a request of `prompt_tokens` within a context of `context_limit`: its own,
// or the default of its mode within the operator's bound, clipped to what is left.  The defaults
// are 8,192 without thinking, 65,536 with, 131,072 with the most effort.  Error: prompt and
// requested tokens do not fit, or the prompt leaves no room for one token. `prompt_tokens` include
// what images add.
Result<uint32_t> resolve_max_tokens(const ConversationRequest& request,
                                    const ConvertOptions& options, int64_t prompt_tokens,
                                    int64_t context_limit);

}  // namespace fathom::codec
