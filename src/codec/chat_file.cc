#include "codec/chat_file.h"

#include <limits>
#include <string>

#include "codec/constraint_fields.h"
#include "codec/json_text.h"

namespace fathom::codec {

namespace {

constexpr uint32_t kMaxTokens = std::numeric_limits<int32_t>::max();

bool has(const JsonValue& body, std::string_view key) {
  const JsonValue* value = body.find(key);
  return value != nullptr && !value->is_null();
}

Result<ChatFile> read_value(JsonValue value) {
  const bool is_list = value.if_array() != nullptr;
  if (is_list) {
    JsonObject body;
    body.append("messages", std::move(value));
    value = JsonValue(std::move(body));
  }
  const JsonValue* messages = value.find("messages");
  const JsonArray* list = messages != nullptr ? messages->if_array() : nullptr;
  if (list == nullptr) {
    return Status(StatusCode::kInvalidArgument,
                  "expected a list of messages, or an object with a list `messages`");
  }
  if (list->empty()) {
    return Status(StatusCode::kInvalidArgument, "the list of messages is empty");
  }
  ConvertOptions options;
  options.models.clear();
  options.max_schema_bytes = kMaxSchemaBytes;
  options.keep_client_sampling = true;
  options.thinking_max_tokens = options.non_thinking_max_tokens = kMaxTokens;
  ChatFile file;
  FATHOM_ASSIGN(file.request, take_request(Protocol::kChatCompletions, &value, options));
  const InferenceOptions& inference = file.request.inference;
  if (has(value, "temperature")) file.temperature = inference.temperature;
  if (has(value, "top_p")) file.top_p = inference.top_p;
  if (has(value, "thinking") || has(value, "reasoning_effort")) {
    file.think = think_of(file.request.conversation);
  }
  return file;
}

}  // namespace

Result<ChatFile> read_chat_file(std::string_view json, std::string_view where) {
  Result<JsonValue> value = parse_json(json);
  if (!value) {
    return Status(StatusCode::kInvalidArgument,
                  std::string(where) + ": not valid JSON: " + value.error().message());
  }
  Result<ChatFile> file = read_value(*std::move(value));
  if (!file) return std::move(file).error().with_context(where);
  return file;
}

}  // namespace fathom::codec
