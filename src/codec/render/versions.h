// The two prompt forms.  Private to the renderer; contracts are those of render_prompt().
#pragma once

#include "codec/prompt.h"

namespace fathom::codec {

Result<Prompt> render_v41(const Conversation& conversation, const RenderOptions& options);
Result<Prompt> render_v4(const Conversation& conversation, const RenderOptions& options);

// About the bytes of the prompt, so that it is allocated once.
size_t estimate_prompt_bytes(const Conversation& conversation);

}  // namespace fathom::codec
