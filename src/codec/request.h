// Reads requests of the three protocols into one form: OpenAI's Chat Completions and Responses, and
// Anthropic's Messages.
//
// Errors are for clients (HTTP 400): a body that is not JSON ("invalid JSON request: ..."), one
// whose fields have wrong types ("invalid request body: WHERE: ..."), or one that asks for
// something that cannot be; of several the first in the order in which the released service checks
// them. Unknown fields are ignored.
//
// Thread: any; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "codec/conversation.h"
#include "fathom/status.h"

namespace fathom::codec {

enum class Protocol { kChatCompletions, kResponses, kMessages };
std::optional<Protocol> parse_protocol(std::string_view name);  // "chat_completions", ...

// What the operator chooses.
struct ConvertOptions {
  bool default_thinking = true;  // if a request does not say
  // An assistant turn with calls after the last user message that has no reasoning is refused;
  // otherwise it gets an empty one.
  bool reject_missing_reasoning = false;
  // Tools for web search, which only a service can run, are dropped or refused.
  bool drop_responses_web_search = true;
  bool drop_messages_web_search = false;
  uint32_t thinking_max_tokens = 393216;      // bound of max_tokens
  uint32_t non_thinking_max_tokens = 393216;  // the same without thinking
  uint32_t max_choices = 1;  // Chat Completions: the greatest n; the released service knows 1 only
  // The released service overrides sampling values that its models do not like: temperature 1 with
  // thinking, top_p 1 or at least 0.95.  True: what the client asked for stays.
  bool keep_client_sampling = false;
  // Of schemas that answers are held to: a response format, and the tools if one of them is strict
  // or a call is required.  What is longer is refused before anything is done with it.
  size_t max_schema_bytes = std::numeric_limits<size_t>::max();
  // Exact names.  Empty: every name is `any_model`, and a request need not have one (local use).
  std::map<std::string, ModelVersion, std::less<>> models = {
      {"DeepSeek-V4-Pro", ModelVersion::kV4Pro}, {"DeepSeek-V4.1-Flash", ModelVersion::kV41Flash}};
  ModelVersion any_model = ModelVersion::kV41Flash;
};

Result<ConversationRequest> read_request(Protocol protocol, std::string_view body,
                                         const ConvertOptions& options);
// The same of a body that has been parsed already.
Result<ConversationRequest> convert_request(Protocol protocol, const JsonValue& body,
                                            const ConvertOptions& options);
// The same; messages and schemas are moved out of the body, whatever the result.
Result<ConversationRequest> take_request(Protocol protocol, JsonValue* body,
                                         const ConvertOptions& options);

enum class RequestErrorKind {
  kParse,       // HTTP 400: not JSON, or a field of the wrong type
  kBadRequest,  // HTTP 400: the text is the client's
  kInternal,    // HTTP 500
};
RequestErrorKind request_error_kind(const Status& error);
// The body of the answer: {"error":{"message",...}}.
std::string request_error_body(const Status& error);

}  // namespace fathom::codec
