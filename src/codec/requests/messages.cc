// Messages bodies, whose shape has been checked.
#include <algorithm>
#include <cctype>

#include "codec/requests/messages_blocks.h"
#include "codec/requests/protocols.h"
#include "codec/requests/request_parts.h"
#include "codec/requests/tools.h"

namespace fathom::codec {

namespace {

// A first block that a client adds to the system text for its own accounting.
bool is_billing_header(std::string_view text) {
  static constexpr std::string_view kHeader = "x-anthropic-billing-header";
  return text.size() >= kHeader.size() &&
         std::equal(kHeader.begin(), kHeader.end(), text.begin(), [](char a, char b) {
           return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
         });
}

// Tools that Anthropic defines and the client runs; only the client knows their parameters.
bool is_client_executed(std::string_view type) {
  for (const std::string_view prefix : {"bash_", "text_editor_", "memory_", "computer_"}) {
    if (type.starts_with(prefix)) return true;
  }
  return false;
}

class MessagesConverter {
 public:
  MessagesConverter(const JsonValue& body, BodyTexts texts, const ConvertOptions& options)
      : body_(body), texts_(texts), options_(options) {}

  Result<ConversationRequest> convert() {
    FATHOM_ASSIGN(request_.model_version, resolve_model(body_, options_));
    if (const JsonArray* tools = list_field(body_, "tools")) FATHOM_TRY(declare(*tools));
    const JsonValue* thinking = field(body_, "thinking");
    const JsonValue* output_config = field(body_, "output_config");
    resolve_thinking(thinking != nullptr ? string_field(*thinking, "type") : nullptr,
                     output_config != nullptr ? field(*output_config, "effort") : nullptr,
                     options_.default_thinking, &conversation());
    FATHOM_TRY(convert_messages());
    FATHOM_TRY(settle_reasoning("content[].thinking", options_, &conversation()));
    FATHOM_TRY(settle_tools(std::move(declared_), choice(), options_, &conversation()));
    read_stop();
    FATHOM_TRY(check_stop(request_.parsing.stop_sequences, /*single=*/false));
    FATHOM_ASSIGN(FormatRequest format, read_format());
    FATHOM_TRY(settle_constraint(std::move(format), &request_));
    FATHOM_TRY(read_values());
    request_.stream = bool_field(body_, "stream", false);
    const JsonValue* tool_choice = field(body_, "tool_choice");
    request_.parsing.single_call =
        tool_choice != nullptr && bool_field(*tool_choice, "disable_parallel_tool_use", false);
    return std::move(request_);
  }

 private:
  Conversation& conversation() { return request_.conversation; }

  Status declare(const JsonArray& tools) {
    for (size_t i = 0; i < tools.size(); ++i) {
      const std::string place = "tools[" + std::to_string(i) + "]";
      const std::string_view type = text_field(tools[i], "type");
      if (!type.empty() && type != "custom") {
        FATHOM_TRY(drop_server_tool(tools[i], type, place));
        continue;
      }
      DeclaredTool declared = declared_tool(tools[i], "input_schema", texts_);
      if (!declared.validated) declared.tool.parameters = nullptr;
      declared.validated = true;
      // V4 has no prompt for tools that come later.
      declared.tool.defer_loading = request_.model_version != ModelVersion::kV4Pro &&
                                    bool_field(tools[i], "defer_loading", false);
      FATHOM_TRY(check_tool_name(declared.tool.name, place + ".name"));
      declared_.push_back(std::move(declared));
    }
    const bool all_deferred =
        !declared_.empty() && std::all_of(declared_.begin(), declared_.end(),
                                          [](const auto& one) { return one.tool.defer_loading; });
    if (!all_deferred) return Status();
    return bad_request(
        "tools: at least one tool must have defer_loading=false. All tools cannot be deferred.");
  }

  Status drop_server_tool(const JsonValue& tool, std::string_view type, const std::string& place) {
    if (options_.drop_messages_web_search && type.starts_with("web_search")) {
      dropped_.emplace_back(text_field(tool, "name"));
      return Status();
    }
    if (is_client_executed(type)) {
      return bad_request(place + ": the tool type '" + std::string(type) +
                         "' has no definition here. Declare the tool with name, description and "
                         "input_schema instead.");
    }
    return bad_request(place + ": server tools are not supported");
  }

  Status convert_messages() {
    const JsonArray& messages = *list_field(body_, "messages");
    if (messages.empty()) return bad_request("messages: at least one message is required");
    if (const JsonValue* system = field(body_, "system")) add_system(*system);
    FATHOM_TRY(MessagesBlocks(request_.model_version, texts_, options_, declared_,
                              &conversation().messages)
                   .convert(messages));
    if (conversation().messages.empty()) {
      return bad_request("messages: at least one message must have content");
    }
    mark_prefill();
    return Status();
  }

  void add_system(const JsonValue& system) {
    InputMessage out;
    out.role = Role::kSystem;
    if (const std::string* text = system.if_string()) out.content = texts_.take(*text);
    if (const JsonArray* blocks = system.if_array()) {
      ContentBuilder builder(request_.model_version);
      for (const JsonValue& block : *blocks) {
        const bool is_first = &block == blocks->data();
        if (is_first && is_billing_header(text_field(block, "text"))) continue;
        builder.add_text(texts_.take(block, "text"));
      }
      builder.move_to(&out);
    }
    conversation().messages.push_back(std::move(out));
  }

  // A last assistant message is the beginning of the answer.
  void mark_prefill() {
    InputMessage& last = conversation().messages.back();
    const bool has_text = !last.content.empty() || !last.reasoning_content.value_or("").empty();
    last.prefix = last.role == Role::kAssistant && last.tool_calls.empty() && has_text;
  }

  Choice choice() const {
    Choice out;
    const JsonValue* value = field(body_, "tool_choice");
    if (value == nullptr) return out;
    const std::string_view type = text_field(*value, "type");
    if (type == "none") out.mode = ToolChoice::kNone;
    if (type == "any") out.mode = ToolChoice::kRequired;
    if (type != "tool") return out;
    const std::string_view name = text_field(*value, "name");
    if (std::find(dropped_.begin(), dropped_.end(), name) != dropped_.end()) return out;
    out.mode = ToolChoice::kRequired;
    out.names.emplace_back(name);
    return out;
  }

  Result<FormatRequest> read_format() const {
    FormatRequest out;
    const JsonValue* output_config = field(body_, "output_config");
    const JsonValue* format = output_config != nullptr ? field(*output_config, "format") : nullptr;
    if (format == nullptr) format = field(body_, "output_format");
    if (format == nullptr) return out;
    const std::string_view type = text_field(*format, "type");
    if (type == "json_object") out.format.kind = ResponseFormat::Kind::kJsonObject;
    if (type == "json_schema") {
      FATHOM_TRY(out.take_schema(*format->find("schema"), texts_, options_));
    }
    return out;
  }

  void read_stop() {
    const JsonArray* stop = list_field(body_, "stop_sequences");
    if (stop == nullptr) return;
    for (const JsonValue& text : *stop) {
      request_.parsing.stop_sequences.push_back(*text.if_string());
    }
  }

  Status read_values() {
    const std::optional<float> temperature = float_field(body_, "temperature");
    const std::optional<float> top_p = float_field(body_, "top_p");
    FATHOM_TRY(check_temperature(temperature));
    FATHOM_TRY(check_top_p(top_p));
    resolve_sampling(temperature, top_p, options_, &request_);
    std::optional<uint64_t> max_tokens = natural_field(body_, "max_tokens");
    if (!max_tokens) return Status();
    const bool thinking = conversation().thinking;
    // Clients of this protocol ask for the most of other models; more than ours is lowered.
    max_tokens = std::min<uint64_t>(
        *max_tokens, thinking ? options_.thinking_max_tokens : options_.non_thinking_max_tokens);
    FATHOM_TRY(check_max_tokens(max_tokens, thinking, options_));
    request_.inference.max_tokens = static_cast<uint32_t>(*max_tokens);
    return Status();
  }

  const JsonValue& body_;
  const BodyTexts texts_;
  const ConvertOptions& options_;
  ConversationRequest request_;
  std::vector<DeclaredTool> declared_;
  std::vector<std::string> dropped_;  // names of server tools that are left out
};

}  // namespace

Result<ConversationRequest> convert_messages(const JsonValue& body, BodyTexts texts,
                                             const ConvertOptions& options) {
  return MessagesConverter(body, texts, options).convert();
}

}  // namespace fathom::codec
