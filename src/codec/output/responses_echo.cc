// What a response repeats of its request.
#include <array>
#include <charconv>

#include "codec/json_text.h"
#include "codec/output/events_responses.h"

namespace fathom::codec {
namespace {

std::string compact(const JsonValue* value, std::string_view absent) {
  if (value == nullptr || value->is_null()) return std::string(absent);
  return write_json(*value, JsonStyle::kCompact);
}

// Sampling values are 32-bit floats: their shortest digits.
std::string sampling_value(const JsonValue* value) {
  double number = 1;
  if (value != nullptr && value->if_double() != nullptr) number = *value->if_double();
  if (value != nullptr && value->if_int64() != nullptr) {
    number = static_cast<double>(*value->if_int64());
  }
  std::array<char, 64> digits;
  const auto [end, error] =
      std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<float>(number));
  double shortest = number;
  if (error == std::errc()) std::from_chars(digits.data(), end, shortest);
  return write_json(JsonValue(shortest), JsonStyle::kCompact);
}

// {"type": the member `type`, then the named members, null if absent.
void write_members(const JsonValue& value, std::initializer_list<std::string_view> names,
                   JsonWriter* json) {
  json->begin_object();
  for (const std::string_view name : names) json->key(name).raw(compact(value.find(name), "null"));
}

void write_tool(const JsonValue& tool, JsonWriter* json) {
  const JsonValue* type = tool.find("type");
  const std::string* kind = type != nullptr ? type->if_string() : nullptr;
  if (kind == nullptr) return;
  if (*kind == "function") {
    write_members(tool, {"type", "name", "description", "parameters", "strict"}, json);
  } else if (*kind == "namespace") {
    write_members(tool, {"type", "name", "description"}, json);
    json->key("tools").begin_array();
    const JsonValue* members = tool.find("tools");
    if (members != nullptr && members->if_array() != nullptr) {
      for (const JsonValue& member : *members->if_array()) write_tool(member, json);
    }
    json->end_array();
  } else if (*kind == "custom") {
    write_members(tool, {"type", "name"}, json);
  } else if (*kind == "tool_search") {
    write_members(tool, {"type", "execution", "description", "parameters"}, json);
  } else if (*kind == "web_search" || *kind == "web_search_2025_08_26") {
    write_members(tool, {"type"}, json);
  } else {
    return;
  }
  json->end_object();
}

std::string text_member(const JsonValue* text) {
  static constexpr std::string_view kPlain = "{\"type\":\"text\"}";
  std::string out;
  JsonWriter json(&out);
  json.begin_object().key("format");
  const JsonValue* format = text != nullptr ? text->find("format") : nullptr;
  const JsonValue* type = format != nullptr ? format->find("type") : nullptr;
  if (type != nullptr && *type == JsonValue("json_schema")) {
    write_members(*format, {"type", "name", "description", "schema", "strict"}, &json);
    json.end_object();
  } else if (type != nullptr) {
    write_members(*format, {"type"}, &json);
    json.end_object();
  } else {
    json.raw(kPlain);
  }
  json.key("verbosity").raw(compact(text != nullptr ? text->find("verbosity") : nullptr, "null"));
  json.end_object();
  return out;
}

std::string reasoning_member(const JsonValue* reasoning) {
  const auto member = [reasoning](std::string_view name) {
    return compact(reasoning != nullptr ? reasoning->find(name) : nullptr, "null");
  };
  std::string summary = member("summary");
  if (summary == "null") summary = member("generate_summary");
  return "{\"effort\":" + member("effort") + ",\"summary\":" + summary + "}";
}

}  // namespace

ResponsesEcho responses_echo(const JsonValue& body) {
  ResponsesEcho echo;
  echo.instructions = compact(body.find("instructions"), "null");
  echo.max_output_tokens = compact(body.find("max_output_tokens"), "null");
  echo.parallel_tool_calls = compact(body.find("parallel_tool_calls"), "true");
  echo.reasoning = reasoning_member(body.find("reasoning"));
  echo.temperature = sampling_value(body.find("temperature"));
  echo.text = text_member(body.find("text"));
  echo.tool_choice = compact(body.find("tool_choice"), "\"auto\"");
  echo.top_logprobs = compact(body.find("top_logprobs"), "0");
  echo.top_p = sampling_value(body.find("top_p"));
  echo.user = compact(body.find("user"), "null");
  const JsonValue* tools = body.find("tools");
  if (tools != nullptr && tools->if_array() != nullptr) {
    echo.tools.clear();
    JsonWriter json(&echo.tools);
    json.begin_array();
    for (const JsonValue& tool : *tools->if_array()) write_tool(tool, &json);
    json.end_array();
  }
  return echo;
}

ResponsesEventOptions responses_event_options(const ConversationRequest& request,
                                              const JsonValue& body, AnswerInfo info) {
  ResponsesEventOptions options;
  options.info = std::move(info);
  options.echo = responses_echo(body);
  options.namespaced_tools = request.namespaced_tools;
  options.custom_tools = request.custom_tools;
  const JsonValue* tools = body.find("tools");
  if (tools == nullptr || tools->if_array() == nullptr) return options;
  for (const JsonValue& tool : *tools->if_array()) {
    const JsonValue* type = tool.find("type");
    const JsonValue* execution = tool.find("execution");
    if (type != nullptr && *type == JsonValue("tool_search") && execution != nullptr &&
        *execution == JsonValue("client")) {
      options.client_tool_search = true;
    }
  }
  return options;
}

}  // namespace fathom::codec
