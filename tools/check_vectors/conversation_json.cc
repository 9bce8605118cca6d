#include "check_vectors/conversation_json.h"

#include "check_vectors/ops.h"

namespace fathom::check_vectors {

namespace {

using codec::Conversation;
using codec::InputMessage;
using codec::JsonArray;
using codec::JsonObject;
using codec::JsonValue;
using codec::Role;

const JsonArray& list_of(const JsonObject& object, std::string_view key) {
  static const JsonArray kEmpty;
  const JsonValue* value = object.find(key);
  const JsonArray* list = value != nullptr ? value->if_array() : nullptr;
  return list != nullptr ? *list : kEmpty;
}

bool flag_of(const JsonObject& object, std::string_view key, bool fallback) {
  const JsonValue* value = object.find(key);
  return value != nullptr && value->if_bool() != nullptr ? *value->if_bool() : fallback;
}

codec::ToolDefinition tool_of(const JsonObject& json) {
  codec::ToolDefinition tool;
  tool.name = text_of(json, "name");
  const JsonValue* description = json.find("description");
  if (description != nullptr && description->if_string() != nullptr) {
    tool.description = *description->if_string();
  }
  if (const JsonValue* parameters = json.find("parameters")) tool.parameters = *parameters;
  tool.defer_loading = flag_of(json, "defer_loading", false);
  return tool;
}

codec::ImageSource image_of(const JsonObject& json) {
  codec::ImageSource source;
  if (text_of(json, "kind") == "data_url") {
    source.kind = codec::ImageSource::Kind::kDataUrl;
    source.data = text_of(json, "data_url");
  } else {
    source.data = text_of(json, "url");
  }
  if (text_of(json, "detail") == "low") source.detail = codec::ImageDetail::kLow;
  source.path = text_of(json, "path");
  return source;
}

Role role_of(std::string_view name) {
  for (const Role role :
       {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool, Role::kLatestReminder}) {
    if (codec::role_name(role) == name) return role;
  }
  return Role::kUser;
}

InputMessage message_of(const JsonObject& json) {
  InputMessage message;
  message.role = role_of(text_of(json, "role"));
  message.content = text_of(json, "content");
  const JsonValue* reasoning = json.find("reasoning_content");
  if (reasoning != nullptr && reasoning->if_string() != nullptr) {
    message.reasoning_content = *reasoning->if_string();
  }
  for (const JsonValue& call : list_of(json, "tool_calls")) {
    const JsonObject& object = *call.if_object();
    message.tool_calls.push_back({std::string(text_of(object, "id")),
                                  std::string(text_of(object, "name")),
                                  std::string(text_of(object, "arguments"))});
  }
  message.prefix = flag_of(json, "prefix", false);
  message.tool_call_id = text_of(json, "tool_call_id");
  for (const JsonValue& image : list_of(json, "images")) {
    message.image_sources.push_back(image_of(*image.if_object()));
  }
  for (const JsonValue& tool : list_of(json, "tools")) {
    message.tools.push_back(tool_of(*tool.if_object()));
  }
  return message;
}

void set_effort(std::string_view name, Conversation* conversation) {
  for (const codec::Effort effort :
       {codec::Effort::kLow, codec::Effort::kHigh, codec::Effort::kXhigh, codec::Effort::kMax}) {
    if (codec::effort_name(effort) == name) conversation->effort = effort;
  }
}

template <class Value>
JsonValue or_null(const std::optional<Value>& value) {
  return value ? JsonValue(*value) : JsonValue();
}

JsonValue object_of(const codec::ToolDefinition& tool) {
  JsonObject json;
  json.append("name", tool.name);
  json.append("description", or_null(tool.description));
  json.append("parameters", tool.parameters);
  json.append("strict", or_null(tool.strict));
  if (tool.defer_loading) json.append("defer_loading", true);
  return json;
}

template <class Element>
JsonArray list_json(const std::vector<Element>& elements, JsonValue (*one)(const Element&)) {
  JsonArray list;
  for (const Element& element : elements) list.push_back(one(element));
  return list;
}

JsonValue object_of(const InputMessage& message) {
  JsonObject json;
  json.append("role", codec::role_name(message.role));
  json.append("content", message.content);
  if (message.role == Role::kAssistant) {
    json.append("reasoning_content", or_null(message.reasoning_content));
    JsonArray calls;
    for (const codec::ToolCall& call : message.tool_calls) {
      JsonObject object;
      object.append("id", call.id);
      object.append("name", call.name);
      object.append("arguments", call.arguments);
      calls.emplace_back(std::move(object));
    }
    json.append("tool_calls", calls.empty() ? JsonValue() : JsonValue(std::move(calls)));
    if (message.prefix) json.append("prefix", true);
  } else if (message.role != Role::kLatestReminder) {
    json.append("images", list_json<codec::ImageSource>(message.image_sources, json_of));
  }
  if (!message.tools.empty())
    json.append("tools", list_json<codec::ToolDefinition>(message.tools, object_of));
  if (message.role == Role::kTool) json.append("tool_call_id", message.tool_call_id);
  return json;
}

JsonValue object_of(const Conversation& conversation) {
  static constexpr std::string_view kChoices[] = {"auto", "required", "none"};
  static constexpr std::string_view kFormats[] = {"text", "json_object", "json_schema", "regex"};
  JsonObject json;
  json.append("messages", list_json<InputMessage>(conversation.messages, object_of));
  json.append("thinking_mode", conversation.thinking);
  json.append("tools", list_json<codec::ToolDefinition>(conversation.tools, object_of));
  json.append("tool_choice", kChoices[static_cast<size_t>(conversation.tool_choice)]);
  json.append("reasoning_effort", conversation.effort
                                      ? JsonValue(codec::effort_name(*conversation.effort))
                                      : JsonValue());
  const codec::ResponseFormat& format = conversation.response_format;
  json.append("response_format", kFormats[static_cast<size_t>(format.kind)]);
  if (format.kind == codec::ResponseFormat::Kind::kJsonSchema) {
    json.append("response_schema", format.schema);
  }
  if (format.kind == codec::ResponseFormat::Kind::kRegex) {
    json.append("response_regex", format.regex);
  }
  return json;
}

JsonValue object_of(const codec::InferenceOptions& inference) {
  JsonObject json;
  json.append("max_tokens",
              inference.max_tokens ? JsonValue(uint64_t{*inference.max_tokens}) : JsonValue());
  json.append("temperature", static_cast<double>(inference.temperature));
  json.append("top_p", static_cast<double>(inference.top_p));
  json.append("logprobs", inference.logprobs);
  json.append("top_logprobs", inference.top_logprobs
                                  ? JsonValue(static_cast<int>(*inference.top_logprobs))
                                  : JsonValue());
  json.append("seed", or_null(inference.seed));
  if (const auto& constraint = inference.output_constraint) {
    JsonObject object;
    object.append("kind", codec::constraint_kind_name(constraint->kind));
    object.append("schema", constraint->text);
    json.append("output_constraint", std::move(object));
  } else {
    json.append("output_constraint", nullptr);
  }
  return json;
}

JsonValue object_of(const codec::ParsingOptions& parsing) {
  JsonObject json;
  json.append("parse_tool_calls", parsing.parse_tool_calls);
  json.append("starts_in_tool_calls", parsing.starts_in_tool_calls);
  json.append("parse_json_output", parsing.parse_json_output);
  const std::string_view stage = codec::thinking_stage_name(parsing.thinking_initial_stage);
  json.append("thinking_initial_stage", stage.empty() ? JsonValue() : JsonValue(stage));
  JsonArray stop;
  for (const std::string& text : parsing.stop_sequences) stop.emplace_back(text);
  json.append("stop_sequences", std::move(stop));
  return json;
}

}  // namespace

Conversation conversation_of(const JsonValue& json) {
  Conversation conversation;
  const JsonObject* object = json.if_object();
  if (object == nullptr) return conversation;
  for (const JsonValue& message : list_of(*object, "messages")) {
    conversation.messages.push_back(message_of(*message.if_object()));
  }
  conversation.thinking = flag_of(*object, "thinking_mode", true);
  for (const JsonValue& tool : list_of(*object, "tools")) {
    conversation.tools.push_back(tool_of(*tool.if_object()));
  }
  const std::string_view choice = text_of(*object, "tool_choice");
  if (choice == "required") conversation.tool_choice = codec::ToolChoice::kRequired;
  if (choice == "none") conversation.tool_choice = codec::ToolChoice::kNone;
  set_effort(text_of(*object, "reasoning_effort"), &conversation);
  codec::ResponseFormat& format = conversation.response_format;
  if (text_of(*object, "response_format") == "json_object") {
    format.kind = codec::ResponseFormat::Kind::kJsonObject;
  }
  if (const JsonValue* schema = object->find("response_schema")) {
    format.kind = codec::ResponseFormat::Kind::kJsonSchema;
    format.schema = *schema;
  } else if (const JsonValue* regex = object->find("response_regex")) {
    format.kind = codec::ResponseFormat::Kind::kRegex;
    format.regex = *regex->if_string();
  }
  return conversation;
}

JsonValue json_of(const codec::ImageSource& source) {
  const bool is_data = source.kind == codec::ImageSource::Kind::kDataUrl;
  JsonObject json;
  json.append("kind", is_data ? "data_url" : "url");
  json.append(is_data ? "data_url" : "url", source.data);
  json.append("detail", codec::image_detail_name(source.detail));
  if (!source.path.empty()) json.append("path", source.path);
  return json;
}

JsonValue json_of(const codec::ConversationRequest& request) {
  JsonObject json;
  json.append("conversation", object_of(request.conversation));
  json.append("inference_options", object_of(request.inference));
  json.append("parsing_options", object_of(request.parsing));
  json.append("model_version",
              request.model_version == codec::ModelVersion::kV4Pro ? "v4" : "v4.1");
  json.append("stream", request.stream);
  return json;
}

}  // namespace fathom::check_vectors
