// The readers of the three protocols.  Private to request.cc; contracts are those of
// convert_request().
#pragma once

#include "codec/request.h"
#include "codec/requests/shape.h"

namespace fathom::codec {

// Remembers the first field of a wrong type.
void check_chat_shape(const Shape& body, bool needs_model);
void check_responses_shape(const Shape& body, bool needs_model);
void check_messages_shape(const Shape& body, bool needs_model);

// Of a body whose shape has been checked; `texts` are those of `body`.
Result<ConversationRequest> convert_chat(const JsonValue& body, BodyTexts texts,
                                         const ConvertOptions& options);
Result<ConversationRequest> convert_responses(const JsonValue& body, BodyTexts texts,
                                              const ConvertOptions& options);
Result<ConversationRequest> convert_messages(const JsonValue& body, BodyTexts texts,
                                             const ConvertOptions& options);

}  // namespace fathom::codec
