// Chat Completions bodies, whose shape has been checked.
#include <algorithm>
#include <unordered_set>

#include "codec/requests/images.h"
#include "codec/requests/protocols.h"
#include "codec/requests/request_parts.h"
#include "codec/requests/tools.h"

namespace fathom::codec {

namespace {

const JsonArray kNothing;

class ChatConverter {
 public:
  ChatConverter(const JsonValue& body, BodyTexts texts, const ConvertOptions& options)
      : body_(body), texts_(texts), options_(options) {}

  Result<ConversationRequest> convert() {
    FATHOM_ASSIGN(request_.model_version, resolve_model(body_, options_));
    FATHOM_TRY(check_names());
    const JsonValue* thinking = field(body_, "thinking");
    resolve_thinking(thinking != nullptr ? string_field(*thinking, "type") : nullptr,
                     field(body_, "reasoning_effort"), options_.default_thinking, &conversation());
    FATHOM_TRY(convert_messages());
    FATHOM_TRY(settle_reasoning("reasoning_content", options_, &conversation()));
    FATHOM_TRY(read_format());
    if (format_.format.kind == ResponseFormat::Kind::kJsonObject &&
        !mentions_json(conversation().messages)) {
      return bad_request(
          "Prompt must contain the word 'json' in some form to use 'response_format' of type "
          "'json_object'.");
    }
    FATHOM_TRY(settle_tools(std::move(declared_), choice(), options_, &conversation()));
    if (conversation().messages.back().prefix && !conversation().tools.empty()) {
      return bad_request("Function call should not be used with prefix");
    }
    FATHOM_TRY(read_stop());
    FATHOM_TRY(read_stream());
    FATHOM_TRY(settle_constraint(std::move(format_), &request_));
    FATHOM_TRY(read_values());
    return std::move(request_);
  }

 private:
  Conversation& conversation() { return request_.conversation; }
  const JsonArray& list(std::string_view key) const {
    const JsonArray* found = list_field(body_, key);
    return found != nullptr ? *found : kNothing;
  }

  Status check_names() {
    const JsonArray& tools = list("tools");
    for (size_t i = 0; i < tools.size(); ++i) {
      declared_.push_back(declared_tool(*tools[i].find("function"), "parameters", texts_));
      FATHOM_TRY(check_tool_name(declared_.back().tool.name,
                                 "tools[" + std::to_string(i) + "].function.name"));
    }
    return Status();
  }

  Status convert_messages() {
    const JsonArray& messages = list("messages");
    if (messages.empty()) return bad_request("Empty input messages");
    conversation().messages.reserve(messages.size());
    for (size_t i = 0; i < messages.size(); ++i) FATHOM_TRY(convert_message(messages[i], i));
    if (!open_calls_.empty()) return insufficient_results();
    if (conversation().messages.empty()) return bad_request("Empty input messages");
    if (has_misplaced_prefix_) {
      return bad_request(
          "Invalid completion message: prefix set true with message which is not final message or "
          "message role is not assistant");
    }
    return Status();
  }

  static Status insufficient_results() {
    return bad_request(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. (insufficient tool messages following tool_calls message)");
  }

  Status convert_message(const JsonValue& message, size_t i) {
    const std::string_view role = text_field(message, "role");
    if (role == "tool") return convert_result(message, i);
    if (!open_calls_.empty()) return insufficient_results();
    answered_.clear();
    InputMessage out;
    if (role == "assistant") {
      FATHOM_TRY(convert_assistant(message, i, &out));
    } else {
      out.role = role == "user"              ? Role::kUser
                 : role == "latest_reminder" ? Role::kLatestReminder
                                             : Role::kSystem;
      FATHOM_TRY(convert_content(*message.find("content"), i, &out));
      const bool is_empty_system =
          out.role == Role::kSystem && out.content.empty() && out.image_sources.empty();
      if (is_empty_system) return Status();  // as the released service does, here only
    }
    conversation().messages.push_back(std::move(out));
    return Status();
  }

  Status convert_assistant(const JsonValue& message, size_t i, InputMessage* out) {
    out->role = Role::kAssistant;
    const JsonValue* content = field(message, "content");
    const JsonValue* refusal = field(message, "refusal");
    const JsonArray* calls = list_field(message, "tool_calls");
    if (content == nullptr && refusal == nullptr && calls == nullptr) {
      return bad_request("Invalid assistant message: content or tool_calls must be set");
    }
    if (content != nullptr) {
      FATHOM_TRY(convert_content(*content, i, out));
    } else if (refusal != nullptr) {
      out->content = texts_.take(*refusal->if_string());
    }
    if (const std::string* reasoning = string_field(message, "reasoning_content")) {
      out->reasoning_content = texts_.take(*reasoning);
    }
    if (calls != nullptr) FATHOM_TRY(convert_calls(*calls, i, out));
    if (bool_field(message, "prefix", false)) {
      out->prefix = i + 1 == list("messages").size();
      has_misplaced_prefix_ = has_misplaced_prefix_ || !out->prefix;
    }
    return Status();
  }

  Status convert_calls(const JsonArray& calls, size_t i, InputMessage* out) {
    if (calls.empty()) {
      return bad_request("Invalid 'messages[" + std::to_string(i) +
                         "].tool_calls': empty array. Expected an array with minimum length 1, but "
                         "got an empty array instead.");
    }
    for (const JsonValue& call : calls) {
      const JsonValue& function = *call.find("function");
      out->tool_calls.push_back({std::string(text_field(call, "id")),
                                 std::string(text_field(function, "name")),
                                 texts_.take(function, "arguments")});
      if (!open_calls_.insert(text_field(call, "id")).second) {
        return duplicate_id(text_field(call, "id"), i);
      }
    }
    return Status();
  }

  static Status duplicate_id(std::string_view id, size_t i) {
    return bad_request("Duplicate value for 'tool_call_id' of " + std::string(id) + " in message[" +
                       std::to_string(i) + "]");
  }

  Status convert_result(const JsonValue& message, size_t i) {
    const std::string_view id = text_field(message, "tool_call_id");
    if (open_calls_.empty()) {
      return bad_request(
          "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'");
    }
    if (answered_.contains(id)) return duplicate_id(id, i);
    if (open_calls_.erase(id) == 0) {
      return bad_request(
          "An assistant message with 'tool_calls' must be followed by tool messages responding to "
          "each 'tool_call_id', The following tool_call_ids did not have response messages: " +
          std::string(id));
    }
    answered_.insert(id);
    InputMessage out;
    out.role = Role::kTool;
    out.tool_call_id = id;
    FATHOM_TRY(convert_content(*message.find("content"), i, &out));
    conversation().messages.push_back(std::move(out));
    return Status();
  }

  Status convert_content(const JsonValue& content, size_t i, InputMessage* out) {
    if (const std::string* text = content.if_string()) {
      out->content = texts_.take(*text);
      return Status();
    }
    ContentBuilder builder(request_.model_version);
    const JsonArray& blocks = *content.if_array();
    for (size_t k = 0; k < blocks.size(); ++k) {
      const std::string_view type = text_field(blocks[k], "type");
      if (type == "text" || type == "refusal") {
        builder.add_text(texts_.take(blocks[k], type));
        continue;
      }
      if (builder.replaces_image()) continue;
      if (out->role == Role::kAssistant) {
        return bad_request("Image in assistant message is not supported");
      }
      const std::string path = ".messages[" + std::to_string(i) + "]";
      const std::string value = path + ".content[" + std::to_string(k) + "]";
      const std::string link =
          path + ".image_url.url[" + std::to_string(builder.num_images()) + "]: image_url.url";
      FATHOM_ASSIGN(ImageSource image,
                    type == "file" ? file_image(blocks[k], {path, value, link})
                                   : image_of(*blocks[k].find("image_url"), {path, value, link}));
      builder.add_image(std::move(image));
    }
    builder.move_to(out);
    return Status();
  }

  static Result<ImageSource> image_of(const JsonValue& image, const ImagePlace& place) {
    return url_image(text_field(image, "url"), text_field(image, "detail"), place);
  }

  // The fields stand beside `type`, or in an object `file` as the SDKs write them.
  static Result<ImageSource> file_image(const JsonValue& block, const ImagePlace& place) {
    const JsonValue* nested = field(block, "file");
    const JsonValue& file = nested != nullptr ? *nested : block;
    const std::string* id = string_field(file, "file_id");
    const std::string* data = string_field(file, "file_data");
    if (id == nullptr && data == nullptr) {
      return bad_request(place.value + ": file must have a file_id or file_data");
    }
    if (id != nullptr && data != nullptr) {
      return bad_request(place.value + ": file cannot have both file_id and file_data");
    }
    if (data == nullptr) return file_id_error(place.value);
    Result<ImageSource> image = url_image(*data, "", place);
    if (image && image->kind == ImageSource::Kind::kDataUrl) return image;
    return bad_request(place.value + ": file_data is not a valid base64 data url");
  }

  Choice choice() const {
    Choice out;
    const JsonValue* value = field(body_, "tool_choice");
    if (value == nullptr) return out;
    if (const std::string* name = value->if_string()) {
      if (*name == "none") out.mode = ToolChoice::kNone;
      if (*name == "required") out.mode = ToolChoice::kRequired;
      return out;
    }
    if (const JsonValue* allowed = field(*value, "allowed_tools")) {
      if (text_field(*allowed, "mode") == "required") out.mode = ToolChoice::kRequired;
      for (const JsonValue& tool : *list_field(*allowed, "tools")) {
        out.names.emplace_back(text_field(*tool.find("function"), "name"));
      }
      if (out.names.empty()) out.mode = ToolChoice::kNone;
      return out;
    }
    out.mode = ToolChoice::kRequired;
    out.names.emplace_back(text_field(*value->find("function"), "name"));
    return out;
  }

  Status read_format() {
    const JsonValue* format = field(body_, "response_format");
    if (format == nullptr) return Status();
    const std::string_view type = text_field(*format, "type");
    if (type == "json_object") {
      format_.format.kind = ResponseFormat::Kind::kJsonObject;
    } else if (type == "regex") {
      format_.format.kind = ResponseFormat::Kind::kRegex;
      format_.format.regex = text_field(*format, "regex");
    } else if (type == "json_schema") {
      const JsonValue& schema = *format->find("json_schema");
      FATHOM_TRY(format_.take_schema(*schema.find("schema"), texts_, options_));
      format_.strict = bool_field(schema, "strict", false);
    }
    return Status();
  }

  Status read_stop() {
    const JsonValue* stop = field(body_, "stop");
    if (stop == nullptr) return Status();
    std::vector<std::string>& texts = request_.parsing.stop_sequences;
    if (const std::string* text = stop->if_string()) texts = {*text};
    if (const JsonArray* array = stop->if_array()) {
      for (const JsonValue& text : *array) texts.push_back(*text.if_string());
    }
    return check_stop(texts, stop->if_string() != nullptr);
  }

  Status read_stream() {
    request_.stream = bool_field(body_, "stream", false);
    request_.parsing.single_call = !bool_field(body_, "parallel_tool_calls", true);
    const JsonValue* stream_options = field(body_, "stream_options");
    if (stream_options == nullptr) return Status();
    if (!request_.stream) {
      return bad_request("stream_options should be set along with stream = true");
    }
    request_.include_usage = bool_field(*stream_options, "include_usage", false);
    return Status();
  }

  Status read_num_choices() {
    const uint64_t n = natural_field(body_, "n").value_or(1);
    if (options_.max_choices == 1 && n != 1) {
      return bad_request("Invalid n value (currently only n = 1 is supported)");
    }
    if (n < 1 || n > options_.max_choices) {
      return bad_request("Invalid n value, the valid range of n is [1, " +
                         std::to_string(options_.max_choices) + "]");
    }
    request_.num_choices = static_cast<uint32_t>(n);
    return Status();
  }

  Status read_penalty(std::string_view name, std::optional<float>* penalty) {
    *penalty = float_field(body_, name);
    if (!*penalty || (**penalty >= -2.0f && **penalty <= 2.0f)) return Status();
    return bad_request("Invalid " + std::string(name) + " value, the valid range of " +
                       std::string(name) + " is [-2, 2]");
  }

  Status read_values() {
    InferenceOptions& inference = request_.inference;
    FATHOM_TRY(read_num_choices());
    FATHOM_TRY(read_penalty("presence_penalty", &inference.presence_penalty));
    FATHOM_TRY(read_penalty("frequency_penalty", &inference.frequency_penalty));
    const std::optional<float> temperature = float_field(body_, "temperature");
    const std::optional<float> top_p = float_field(body_, "top_p");
    FATHOM_TRY(check_temperature(temperature));
    FATHOM_TRY(check_top_p(top_p));
    resolve_sampling(temperature, top_p, options_, &request_);
    FATHOM_TRY(read_logprobs());
    std::optional<uint64_t> max_tokens = natural_field(body_, "max_tokens");
    if (!max_tokens) max_tokens = natural_field(body_, "max_completion_tokens");
    FATHOM_TRY(check_max_tokens(max_tokens, conversation().thinking, options_));
    if (max_tokens) inference.max_tokens = static_cast<uint32_t>(*max_tokens);
    return read_seed();
  }

  Status read_logprobs() {
    InferenceOptions& inference = request_.inference;
    inference.logprobs = bool_field(body_, "logprobs", false);
    const std::optional<uint64_t> top = natural_field(body_, "top_logprobs");
    if (!top) return Status();
    if (!inference.logprobs) {
      return bad_request(
          "Invalid top_logprobs and logprobs value, logprobs must be set to true if top_logprobs "
          "is used.");
    }
    constexpr uint64_t kMaxTopLogprobs = 20;
    if (*top > kMaxTopLogprobs) {
      return bad_request("Invalid top_logprobs value, the valid range of top_logprobs is [0, 20].");
    }
    inference.top_logprobs = static_cast<uint8_t>(*top);
    return Status();
  }

  // OpenAI takes any 64-bit integer, negative ones too; they are taken modulo 2^64.
  Status read_seed() {
    request_.inference.seed = natural_field(body_, "seed");
    const JsonValue* seed = field(body_, "seed");
    if (seed != nullptr && seed->if_uint64() != nullptr) {
      return bad_request("Invalid seed value, the valid range of seed is [0, 2^63)");
    }
    return Status();
  }

  const JsonValue& body_;
  const BodyTexts texts_;
  const ConvertOptions& options_;
  ConversationRequest request_;
  std::vector<DeclaredTool> declared_;
  FormatRequest format_;
  bool has_misplaced_prefix_ = false;
  std::unordered_set<std::string_view> open_calls_;  // ids without a result so far
  std::unordered_set<std::string_view> answered_;
};

}  // namespace

Result<ConversationRequest> convert_chat(const JsonValue& body, BodyTexts texts,
                                         const ConvertOptions& options) {
  return ChatConverter(body, texts, options).convert();
}

}  // namespace fathom::codec
