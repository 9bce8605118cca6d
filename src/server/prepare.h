// From the body of a request to a request of token ids.
//
// Thread: codec threads; pure functions.  Errors are for clients.
#pragma once

#include "codec/json_value.h"
#include "codec/request.h"
#include "fathom/request.h"
#include "server/api_error.h"
#include "server/services.h"

namespace fathom::server {

// The text of a request as JSON.
Result<codec::JsonValue> parse_body(std::string_view text);

struct PreparedConversation {
  codec::ConversationRequest chat;
  Request request;
};
// A body of one of the three protocols.  Messages and schemas may be moved out of it.
Result<PreparedConversation> prepare_conversation(const Services& services,
                                                  codec::Protocol protocol, codec::JsonValue* body);
// The body's own constraint (codec/constraint_fields.h), else that of `request`; compiled.
Status settle_constraint(const Services& services, const codec::JsonValue& body, Request* request);
// Encoding takes some twenty times the memory of the text: a text that cannot fit the context, were
// all of its tokens the longest there are, is refused before.
Status check_text_fits(const Services& services, size_t text_bytes);
// Sets the ids of its prompt and its images, and nothing else.
Status encode_conversation(const Services& services, const codec::ConversationRequest& chat,
                           Request* out);
Result<codec::ConversationRequest> read_conversation(const Services& services,
                                                     codec::Protocol protocol,
                                                     const codec::JsonValue& body);

// How many tokens may follow a prompt of `prompt_tokens`: `max_tokens`, or what is left.
Result<int32_t> fit_max_tokens(const Services& services, int64_t prompt_tokens,
                               std::optional<int64_t> max_tokens);

// "context_length_exceeded", "invalid_request_error", ...: the code of an error of the above.
ApiError prepare_error(const Status& status);

}  // namespace fathom::server
