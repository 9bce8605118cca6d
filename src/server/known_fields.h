// Fields of requests that clients of other servers know and that would change an answer: here they
// are done in other words, or refused by name, never dropped in silence.  A field that changes
// nothing of the answer (user, metadata, service_tier, ...) is ignored, as is one nobody knows.
//
// Thread: any; pure functions.
#pragma once

#include <optional>

#include "codec/json_value.h"
#include "fathom/status.h"
#include "server/api_error.h"

namespace fathom::server {

enum class Api { kCompletions, kChat, kResponses, kMessages };

// The first field with a value that asks for what is not done here.  A value that asks for nothing
// (null, false, "", [], {}, or the only one that we do) passes.
std::optional<ApiError> refused_field(Api api, const codec::JsonValue& body);

// `chat_template_kwargs` of vLLM and SGLang in our words: thinking or enable_thinking, and
// reasoning_effort.  What the body itself says of them wins.  Errors: kInvalidArgument.
Status take_template_arguments(codec::JsonValue* body);

}  // namespace fathom::server
