// The operations on requests: convert, render, encode, resolve_max_tokens.
#include <array>
#include <charconv>

#include "check_vectors/conversation_json.h"
#include "check_vectors/ops.h"
#include "codec/json_text.h"
#include "codec/output_limit.h"
#include "codec/prompt.h"

namespace fathom::check_vectors {

namespace {

using codec::JsonArray;
using codec::JsonObject;
using codec::JsonValue;

std::string bytes_of_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    int byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

Outcome run_convert(const JsonObject& vector, Context&) {
  const Result<codec::ConversationRequest> request = request_of(vector);
  return request ? Outcome::of(json_of(*request)) : outcome_of(request.error());
}

// Of a conversation, or of a request.
Result<codec::Conversation> conversation_in(const JsonObject& vector) {
  if (const JsonValue* conversation = vector.find("conversation")) {
    return conversation_of(*conversation);
  }
  FATHOM_ASSIGN(codec::ConversationRequest request, request_of(vector));
  return std::move(request.conversation);
}

Outcome run_render(const JsonObject& vector, Context&) {
  const Result<codec::Conversation> conversation = conversation_in(vector);
  if (!conversation) return outcome_of(conversation.error());
  const Result<codec::Prompt> prompt =
      codec::render_prompt(*conversation, {.version = version_of(vector)});
  if (!prompt) return outcome_of(prompt.error());
  JsonArray images;
  for (const codec::ImageSource* source : prompt->images) images.push_back(json_of(*source));
  JsonObject result;
  result.append("prompt", prompt->text);
  result.append("image_sources", std::move(images));
  return Outcome::of(std::move(result));
}

Outcome run_encode(const JsonObject& vector, Context& context) {
  const Result<codec::Conversation> conversation = conversation_in(vector);
  if (!conversation) return outcome_of(conversation.error());
  const codec::Tokenizer* tokenizer = context.tokenizer(version_of(vector));
  if (tokenizer == nullptr) return Outcome::failed("internal", "no tokenizer");
  const Result<codec::Prompt> prompt =
      codec::render_prompt(*conversation, {.version = version_of(vector)});
  if (!prompt) return outcome_of(prompt.error());
  const Result<std::vector<int32_t>> ids = codec::encode_prompt(*tokenizer, *prompt);
  if (!ids) return outcome_of(ids.error());
  JsonArray list;
  for (const int32_t id : *ids) list.emplace_back(static_cast<int64_t>(id));
  JsonObject result;
  result.append("ids", std::move(list));
  return Outcome::of(std::move(result));
}

Outcome run_limit(const JsonObject& vector, Context&) {
  const Result<codec::ConversationRequest> request = request_of(vector);
  if (!request) return outcome_of(request.error());
  const Result<uint32_t> limit =
      codec::resolve_max_tokens(*request, options_of(vector), integer_of(vector, "prompt_tokens"),
                                integer_of(vector, "context_limit"));
  if (!limit) return outcome_of(limit.error());
  JsonObject result;
  result.append("max_tokens", uint64_t{*limit});
  return Outcome::of(std::move(result));
}

// Absent, null and empty are the same in messages.
void normalize_convert(JsonValue* result) {
  JsonValue* conversation = result->if_object()->find("conversation");
  JsonValue* messages =
      conversation != nullptr ? conversation->if_object()->find("messages") : nullptr;
  if (messages == nullptr) return;
  for (JsonValue& message : *messages->if_array()) {
    JsonObject& object = *message.if_object();
    for (const std::string_view key : {"images", "tool_calls", "reasoning_content", "tools"}) {
      const JsonValue* value = object.find(key);
      if (value == nullptr) continue;
      const bool is_empty =
          value->is_null() || (value->if_array() != nullptr && value->if_array()->empty());
      if (is_empty) object.erase(key);
    }
  }
}

// The messages of schema compilers are our own.
bool same_convert_error(std::string_view expected, std::string_view actual) {
  const auto begins = [&](std::string_view text) {
    return expected.starts_with(text) && actual.starts_with(text);
  };
  if (begins("Invalid json schema: ") || begins("Invalid tool parameters schema : ")) return true;
  static constexpr std::string_view kFunction = "Invalid schema for function '";
  static constexpr std::string_view kNoObject = "schema must be a JSON Schema of";
  return begins(kFunction) && expected.find(kNoObject) == std::string_view::npos &&
         actual.find(kNoObject) == std::string_view::npos;
}

constexpr std::array kOps = {
    Op{"convert", run_convert, normalize_convert, same_convert_error},
    Op{"render", run_render, nullptr, same_convert_error},
    Op{"encode", run_encode, nullptr, same_convert_error},
    Op{"resolve_max_tokens", run_limit},
};

}  // namespace

std::span<const Op> request_ops() { return kOps; }

codec::ConvertOptions options_of(const JsonObject& vector) {
  codec::ConvertOptions options;
  for (const char* alias : {"m", "deepseek-flash"}) options.models[alias] = version_of(vector);
  const JsonValue* given = vector.find("options");
  const JsonObject* object = given != nullptr ? given->if_object() : nullptr;
  if (object == nullptr) return options;
  if (const JsonValue* thinking = object->find("default_thinking_mode")) {
    options.default_thinking = *thinking->if_bool();
  }
  options.reject_missing_reasoning = text_of(*object, "reasoning_content_behavior") == "reject";
  options.drop_responses_web_search = text_of(*object, "responses_web_search") != "reject";
  options.drop_messages_web_search = text_of(*object, "messages_web_search") == "drop";
  options.thinking_max_tokens = static_cast<uint32_t>(
      integer_of(*object, "thinking_max_tokens_upper_bound", options.thinking_max_tokens));
  options.non_thinking_max_tokens = static_cast<uint32_t>(
      integer_of(*object, "non_thinking_max_tokens_upper_bound", options.non_thinking_max_tokens));
  return options;
}

Result<codec::ConversationRequest> request_of(const JsonObject& vector) {
  const auto protocol = codec::parse_protocol(text_of(vector, "protocol"));
  if (!protocol) return Status(StatusCode::kInternal, "unknown protocol");
  const codec::ConvertOptions options = options_of(vector);
  if (const JsonValue* body = vector.find("body")) {
    return codec::convert_request(*protocol, *body, options);
  }
  const bool is_hex = vector.find("body_hex") != nullptr;
  return codec::read_request(*protocol,
                             is_hex ? bytes_of_hex(text_of(vector, "body_hex"))
                                    : std::string(text_of(vector, "body_text")),
                             options);
}

Outcome outcome_of(const Status& error) {
  static constexpr std::string_view kKinds[] = {"parse", "bad_request", "internal"};
  return Outcome::failed(std::string(kKinds[static_cast<size_t>(codec::request_error_kind(error))]),
                         error.message());
}

}  // namespace fathom::check_vectors
