#include "server/known_fields.h"

#include <string>
#include <string_view>

#include "codec/json_text.h"
#include "server/json_fields.h"

namespace fathom::server {
namespace {

using codec::JsonArray;
using codec::JsonObject;
using codec::JsonValue;

constexpr unsigned bit(Api api) { return 1u << static_cast<unsigned>(api); }
constexpr unsigned kCompletions = bit(Api::kCompletions), kChat = bit(Api::kChat),
                   kResponses = bit(Api::kResponses), kMessages = bit(Api::kMessages);
constexpr unsigned kOpenAiText = kCompletions | kChat;

struct Field {
  unsigned apis;
  std::string_view name;
  // The JSON of a value that asks for nothing more than we do; "": none.  Beside it what is empty
  // or false passes, unless this is "true".
  std::string_view passes;
  std::string_view hint;  // what to do instead
};

constexpr Field kRefused[] = {
    {kCompletions, "suffix", "", "this model does not fill in the middle"},
    {kOpenAiText, "best_of", "", "leave it out or give the same as n"},
    {kOpenAiText, "use_beam_search", "", "answers are sampled; n gives several"},
    {kCompletions, "prompt_logprobs", "", "echo with logprobs gives those of the prompt"},
    {kChat, "prompt_logprobs", "", "/v1/completions with echo and logprobs gives them"},
    {kCompletions, "prompt_embeds", "", "send prompt as text or token ids"},
    {kChat, "echo", "", "/v1/completions has it"},
    {kOpenAiText, "include_stop_str_in_output", "", "the stop string is not part of an answer"},
    {kOpenAiText, "truncate_prompt_tokens", "", "send a prompt that fits"},
    {kOpenAiText, "return_token_ids", "", "/tokenize gives the ids of a text"},
    {kOpenAiText, "return_tokens_as_token_ids", "", "/tokenize gives the ids of a text"},
    {kOpenAiText, "logits_processors", "", "logit_bias, bad_words and grammars are there"},
    {kOpenAiText, "kv_transfer_params", "", "there is no transfer between servers"},
    {kChat, "functions", "", "use tools"},
    {kChat, "function_call", "\"none\"", "use tool_choice"},
    {kChat, "modalities", "[\"text\"]", "answers are text"},
    {kChat, "audio", "", "answers are text"},
    {kChat | kResponses, "web_search_options", "", "the server reaches no other machine"},
    {kChat, "add_generation_prompt", "true", "mark a last assistant message with \"prefix\": true"},
    {kChat, "continue_final_message", "", "mark the last message with \"prefix\": true"},
    {kChat, "chat_template", "", "the model's own prompt format is used"},
    {kChat, "documents", "", "put them into a message"},
    {kResponses, "background", "", "keep the connection open, or stream"},
    {kResponses, "conversation", "", "use previous_response_id or input"},
    {kResponses, "prompt", "", "no prompts are stored here; use instructions and input"},
    {kMessages, "mcp_servers", "", "the server reaches no other machine; run the tools yourself"},
    {kMessages, "container", "", "no code is run here"},
};

bool asks_for_nothing(const JsonValue& value) {
  if (const bool* flag = value.if_bool()) return !*flag;
  if (const std::string* text = value.if_string()) return text->empty();
  if (const JsonArray* list = value.if_array()) return list->empty();
  if (const JsonObject* object = value.if_object()) return object->empty();
  return false;
}

// best_of samples of which the best n are given: with as many as n there is nothing to choose.
bool is_all_of_n(const JsonValue& best_of, const JsonValue& body) {
  const JsonValue* n = json_field(body, "n");
  const int64_t* number = n == nullptr ? nullptr : n->if_int64();
  const int64_t* best = best_of.if_int64();
  return best != nullptr && *best == (number == nullptr ? 1 : *number);
}

}  // namespace

std::optional<ApiError> refused_field(Api api, const JsonValue& body) {
  for (const Field& field : kRefused) {
    if ((field.apis & bit(api)) == 0) continue;
    const JsonValue* value = body.find(field.name);
    if (value == nullptr || value->is_null()) continue;
    if (field.passes != "true" && asks_for_nothing(*value)) continue;
    if (codec::write_json(*value, codec::JsonStyle::kCompact) == field.passes) continue;
    if (field.name == "best_of" && is_all_of_n(*value, body)) continue;
    const std::string name(field.name);
    return ApiError{
        .status = 400,
        .message = name + " is not supported by this server: " + std::string(field.hint),
        .code = "unsupported_parameter",
        .param = name};
  }
  return std::nullopt;
}

Status take_template_arguments(JsonValue* body) {
  const JsonValue* arguments = json_field(*body, "chat_template_kwargs");
  if (arguments == nullptr) return Status();
  const auto wrong = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument,
                  "invalid request body: .chat_template_kwargs" + what);
  };
  if (arguments->if_object() == nullptr) return wrong(": expected an object");
  std::optional<bool> thinking;
  std::optional<JsonValue> effort;
  for (const auto& [name, value] : *arguments->if_object()) {
    if (name == "thinking" || name == "enable_thinking") {
      if (value.if_bool() == nullptr) return wrong("." + name + ": expected true or false");
      thinking = *value.if_bool();
    } else if (name == "reasoning_effort") {
      effort = value;
    } else {
      return wrong("." + name + ": known are thinking, enable_thinking and reasoning_effort");
    }
  }
  JsonObject& fields = *body->if_object();
  if (thinking && json_field(*body, "thinking") == nullptr) {
    JsonObject choice;
    choice.append("type", *thinking ? "enabled" : "disabled");
    fields.set("thinking", JsonValue(std::move(choice)));
  }
  if (effort && json_field(*body, "reasoning_effort") == nullptr) {
    fields.set("reasoning_effort", *std::move(effort));
  }
  return Status();
}

}  // namespace fathom::server
