#include "codec/request.h"

#include "codec/json_text.h"
#include "codec/requests/protocols.h"

namespace fathom::codec {

namespace {

constexpr std::string_view kNoJson = "invalid JSON request: ";
constexpr std::string_view kWrongBody = "invalid request body: ";

}  // namespace

std::optional<Protocol> parse_protocol(std::string_view name) {
  if (name == "chat_completions") return Protocol::kChatCompletions;
  if (name == "responses") return Protocol::kResponses;
  if (name == "messages") return Protocol::kMessages;
  return std::nullopt;
}

namespace {

Result<ConversationRequest> convert(Protocol protocol, const JsonValue& body, BodyTexts texts,
                                    const ConvertOptions& options) {
  ShapeCheck check;
  const Shape root(&check, body);
  const bool needs_model = !options.models.empty();
  if (root.is_object()) {
    switch (protocol) {
      case Protocol::kChatCompletions:
        check_chat_shape(root, needs_model);
        break;
      case Protocol::kResponses:
        check_responses_shape(root, needs_model);
        break;
      case Protocol::kMessages:
        check_messages_shape(root, needs_model);
        break;
    }
  }
  FATHOM_TRY(check.status());
  switch (protocol) {
    case Protocol::kChatCompletions:
      return convert_chat(body, texts, options);
    case Protocol::kResponses:
      return convert_responses(body, texts, options);
    case Protocol::kMessages:
      break;
  }
  return convert_messages(body, texts, options);
}

}  // namespace

Result<ConversationRequest> read_request(Protocol protocol, std::string_view body,
                                         const ConvertOptions& options) {
  Result<JsonValue> value = parse_json(body);
  if (!value) {
    return Status(StatusCode::kInvalidArgument, std::string(kNoJson) + value.error().message());
  }
  return take_request(protocol, &*value, options);
}

Result<ConversationRequest> take_request(Protocol protocol, JsonValue* body,
                                         const ConvertOptions& options) {
  return convert(protocol, *body, BodyTexts(body), options);
}

Result<ConversationRequest> convert_request(Protocol protocol, const JsonValue& body,
                                            const ConvertOptions& options) {
  return convert(protocol, body, BodyTexts(nullptr), options);
}

RequestErrorKind request_error_kind(const Status& error) {
  if (error.code() != StatusCode::kInvalidArgument) return RequestErrorKind::kInternal;
  const std::string_view text = error.message();
  return text.starts_with(kNoJson) || text.starts_with(kWrongBody) ? RequestErrorKind::kParse
                                                                   : RequestErrorKind::kBadRequest;
}

std::string request_error_body(const Status& error) {
  const char* code = request_error_kind(error) == RequestErrorKind::kInternal
                         ? "internal_error"
                         : "invalid_request_error";
  JsonObject inner;
  inner.append("message", error.message());
  inner.append("type", code);
  inner.append("param", nullptr);
  inner.append("code", code);
  JsonObject body;
  body.append("error", std::move(inner));
  return write_json(std::move(body), JsonStyle::kCompact);
}

}  // namespace fathom::codec
