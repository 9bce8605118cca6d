// Responses bodies, whose shape has been checked.
#include "codec/requests/protocols.h"
#include "codec/requests/request_parts.h"
#include "codec/requests/responses_items.h"
#include "codec/requests/responses_tools.h"
#include "codec/requests/tools.h"

namespace fathom::codec {

namespace {

class ResponsesConverter {
 public:
  ResponsesConverter(const JsonValue& body, BodyTexts texts, const ConvertOptions& options)
      : body_(body), texts_(texts), options_(options), tools_(texts, options) {}

  Result<ConversationRequest> convert() {
    FATHOM_ASSIGN(request_.model_version, resolve_model(body_, options_));
    tools_.set_version(request_.model_version);
    FATHOM_TRY(refuse_state());
    if (const JsonArray* tools = list_field(body_, "tools")) FATHOM_TRY(tools_.declare(*tools));
    const JsonValue* reasoning = field(body_, "reasoning");
    resolve_thinking(nullptr, reasoning != nullptr ? field(*reasoning, "effort") : nullptr,
                     options_.default_thinking, &conversation());
    FATHOM_TRY(convert_input());
    FATHOM_TRY(settle_reasoning("reasoning_text", options_, &conversation()));
    FATHOM_ASSIGN(const Choice choice, tools_.choice(field(body_, "tool_choice")));
    FATHOM_TRY(settle_tools(std::move(tools_.declared()), choice, options_, &conversation()));
    FATHOM_TRY(read_format());
    if (format_.format.kind == ResponseFormat::Kind::kJsonObject &&
        !mentions_json(conversation().messages)) {
      return bad_request(
          "Response input messages must contain the word 'json' in some form to use 'text.format' "
          "of type 'json_object'.");
    }
    FATHOM_TRY(settle_constraint(std::move(format_), &request_));
    FATHOM_TRY(read_values());
    request_.stream = bool_field(body_, "stream", false);
    request_.parsing.single_call = !bool_field(body_, "parallel_tool_calls", true);
    request_.namespaced_tools = std::move(tools_.namespaced());
    request_.custom_tools = std::move(tools_.custom());
    return std::move(request_);
  }

 private:
  Conversation& conversation() { return request_.conversation; }

  // To ignore them would answer without what the client thinks the model knows.
  Status refuse_state() const {
    for (const std::string_view key : {"previous_response_id", "conversation"}) {
      if (field(body_, key) == nullptr) continue;
      return bad_request(std::string(key) +
                         " is not supported: responses are not stored here. Send the whole "
                         "conversation in 'input' instead.");
    }
    return Status();
  }

  Status convert_input() {
    const std::string_view instructions = text_field(body_, "instructions");
    const JsonValue* input = field(body_, "input");
    if (input == nullptr && instructions.empty()) {
      return bad_request("Either input or instructions must be provided");
    }
    std::vector<InputMessage>& messages = conversation().messages;
    if (!instructions.empty()) {
      messages.emplace_back().role = Role::kSystem;
      messages.back().content = texts_.take(body_, "instructions");
    }
    if (input == nullptr) return Status();
    if (const std::string* text = input->if_string()) {
      messages.emplace_back().content = texts_.take(*text);
      return Status();
    }
    const JsonArray& items = *input->if_array();
    if (items.empty()) return bad_request("Input items array must not be empty");
    FATHOM_TRY(ResponsesItems(request_.model_version, texts_, &tools_, &messages).convert(items));
    if (!messages.empty()) return Status();
    return bad_request(
        "No message is left of the input: none of its items has a text that can be read here.");
  }

  Status read_format() {
    const JsonValue* text = field(body_, "text");
    const JsonValue* format = text != nullptr ? field(*text, "format") : nullptr;
    if (format == nullptr) return Status();
    const std::string_view type = text_field(*format, "type");
    if (type == "json_object") format_.format.kind = ResponseFormat::Kind::kJsonObject;
    if (type != "json_schema") return Status();
    format_.strict = bool_field(*format, "strict", false);
    return format_.take_schema(*format->find("schema"), texts_, options_);
  }

  Status read_values() {
    const std::optional<float> temperature = float_field(body_, "temperature");
    const std::optional<float> top_p = float_field(body_, "top_p");
    FATHOM_TRY(check_temperature(temperature));
    FATHOM_TRY(check_top_p(top_p));
    resolve_sampling(temperature, top_p, options_, &request_);
    InferenceOptions& inference = request_.inference;
    if (const auto top = natural_field(body_, "top_logprobs")) {
      constexpr uint64_t kMaxTopLogprobs = 20;
      if (*top > kMaxTopLogprobs) {
        return bad_request(
            "Invalid top_logprobs value, the valid range of top_logprobs is [0, 20].");
      }
      inference.logprobs = true;
      inference.top_logprobs = static_cast<uint8_t>(*top);
    }
    const std::optional<uint64_t> max_tokens = natural_field(body_, "max_output_tokens");
    FATHOM_TRY(check_max_tokens(max_tokens, conversation().thinking, options_));
    if (max_tokens) inference.max_tokens = static_cast<uint32_t>(*max_tokens);
    return Status();
  }

  const JsonValue& body_;
  const BodyTexts texts_;
  const ConvertOptions& options_;
  ConversationRequest request_;
  ResponsesTools tools_;
  FormatRequest format_;
};

}  // namespace

Result<ConversationRequest> convert_responses(const JsonValue& body, BodyTexts texts,
                                              const ConvertOptions& options) {
  return ResponsesConverter(body, texts, options).convert();
}

}  // namespace fathom::codec
