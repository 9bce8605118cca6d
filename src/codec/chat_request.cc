#include "codec/chat_request.h"

#include <boost/json.hpp>
#include <cmath>
#include <limits>
#include <utility>

namespace fathom::codec {
namespace {

namespace json = boost::json;

constexpr size_t kMaxDepth = 128;

Status wrong(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

// Absent and null are the same to the API.
const json::value* find(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

Result<json::value> parse_json(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::stream_parser parser({}, options);
  json::error_code error;
  const size_t used = parser.write(text.data(), text.size(), error);
  if (!error) parser.finish(error);
  if (!error) return parser.release();
  const std::string_view before = text.substr(0, used);
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  return wrong("not valid JSON: " + error.message() + " at line " + std::to_string(line) +
               ", column " + std::to_string(used - line_start + 1));
}

Result<std::string> read_block(const json::value& block, const std::string& name) {
  const json::object* object = block.if_object();
  const json::value* type = object != nullptr ? find(*object, "type") : nullptr;
  if (type == nullptr || !type->is_string()) return wrong(name + " is not a block with a type");
  if (type->get_string() != "text") {
    return wrong(name + " has type " + quoted(type->get_string()) +
                 "; only text blocks are supported");
  }
  const json::value* text = find(*object, "text");
  if (text == nullptr || !text->is_string()) return wrong(name + " has no text");
  return std::string(text->get_string());
}

Result<std::string> read_content(const json::value& content, const std::string& name) {
  if (content.is_string()) return std::string(content.get_string());
  const json::array* blocks = content.if_array();
  if (blocks == nullptr) return wrong(name + " must be a string or a list of text blocks");
  std::string text;
  for (size_t i = 0; i < blocks->size(); ++i) {
    FATHOM_ASSIGN(const std::string block,
                  read_block((*blocks)[i], name + " block " + std::to_string(i)));
    if (i > 0) text += "\n\n";
    text += block;
  }
  return text;
}

Result<Role> read_role(const json::object& message, const std::string& name) {
  const json::value* value = find(message, "role");
  if (value == nullptr || !value->is_string()) return wrong(name + " has no role");
  const std::string_view role = value->get_string();
  if (role == "system" || role == "developer") return Role::kSystem;
  if (role == "user") return Role::kUser;
  if (role == "assistant") return Role::kAssistant;
  if (role == "latest_reminder") return Role::kLatestReminder;
  if (role == "tool" || role == "function") {
    return wrong(name + " has role " + quoted(role) + "; tools are not supported yet");
  }
  return wrong(name + " has an unknown role " + quoted(role) +
               "; known: system, developer, user, assistant, latest_reminder");
}

Status read_assistant_fields(const json::object& object, const std::string& name,
                             ChatMessage* message) {
  if (find(object, "tool_calls") != nullptr) {
    return wrong(name + " has tool_calls; tools are not supported yet");
  }
  if (const json::value* reasoning = find(object, "reasoning_content")) {
    if (!reasoning->is_string()) return wrong(name + ": reasoning_content must be a string");
    message->reasoning = reasoning->get_string();
  }
  if (const json::value* prefix = find(object, "prefix")) {
    if (!prefix->is_bool()) return wrong(name + ": prefix must be true or false");
    message->prefix = prefix->get_bool();
  }
  return {};
}

Result<ChatMessage> read_message(const json::value& value, const std::string& name) {
  const json::object* object = value.if_object();
  if (object == nullptr) return wrong(name + " is not an object");
  ChatMessage message;
  FATHOM_ASSIGN(message.role, read_role(*object, name));
  if (message.role == Role::kAssistant) {
    FATHOM_TRY(read_assistant_fields(*object, name, &message));
  }
  const json::value* content = find(*object, "content");
  if (content == nullptr) return wrong(name + " has no content");
  FATHOM_ASSIGN(message.content, read_content(*content, name + " content"));
  return message;
}

Result<std::vector<ChatMessage>> read_messages(const json::array& list) {
  if (list.empty()) return wrong("the list of messages is empty");
  std::vector<ChatMessage> messages;
  for (size_t i = 0; i < list.size(); ++i) {
    FATHOM_ASSIGN(ChatMessage message, read_message(list[i], "message " + std::to_string(i)));
    messages.push_back(std::move(message));
  }
  for (size_t i = 0; i + 1 < messages.size(); ++i) {
    if (messages[i].prefix) {
      return wrong("message " + std::to_string(i) +
                   " has prefix set, but only the last message can be continued");
    }
  }
  return messages;
}

Status read_float(const json::object& body, std::string_view key, std::optional<float>* out) {
  const json::value* value = find(body, key);
  if (value == nullptr) return {};
  if (!value->is_number()) return wrong(std::string(key) + " must be a number");
  *out = static_cast<float>(value->to_number<double>());
  return {};
}

Status read_max_tokens(const json::object& body, std::optional<int32_t>* out) {
  for (const std::string_view key : {"max_completion_tokens", "max_tokens"}) {
    const json::value* value = find(body, key);
    if (value == nullptr) continue;
    const int64_t* number = value->if_int64();
    if (number == nullptr || *number < 1 || *number > std::numeric_limits<int32_t>::max()) {
      return wrong(std::string(key) + " must be a whole number from 1 to 2147483647");
    }
    *out = static_cast<int32_t>(*number);
    return {};
  }
  return {};
}

Status read_seed(const json::object& body, std::optional<uint64_t>* out) {
  const json::value* value = find(body, "seed");
  if (value == nullptr) return {};
  if (const int64_t* number = value->if_int64()) {
    *out = static_cast<uint64_t>(*number);
  } else if (const uint64_t* large = value->if_uint64()) {
    *out = *large;
  } else {
    return wrong("seed must be a whole number of at most 64 bits");
  }
  return {};
}

Status read_stop(const json::object& body, std::vector<std::string>* out) {
  const json::value* value = find(body, "stop");
  if (value == nullptr) return {};
  if (value->is_string()) {
    out->emplace_back(value->get_string());
    return {};
  }
  const json::array* list = value->if_array();
  if (list == nullptr) return wrong("stop must be a string or a list of strings");
  for (const json::value& entry : *list) {
    if (!entry.is_string()) return wrong("stop must be a string or a list of strings");
    out->emplace_back(entry.get_string());
  }
  return {};
}

// An explicit `thinking` wins; otherwise the effort "none" is off and any other is on (the API's
// rule).
Status read_think(const json::object& body, std::optional<Think>* out) {
  std::optional<bool> is_on;
  if (const json::value* thinking = find(body, "thinking")) {
    const json::object* object = thinking->if_object();
    const json::value* type = object != nullptr ? find(*object, "type") : nullptr;
    const bool known = type != nullptr && type->is_string() &&
                       (*type == "enabled" || *type == "adaptive" || *type == "disabled");
    if (!known) return wrong("thinking.type must be 'enabled', 'adaptive' or 'disabled'");
    is_on = *type != "disabled";
  }
  Think level = Think::kHigh;
  if (const json::value* effort = find(body, "reasoning_effort")) {
    constexpr std::pair<std::string_view, Think> kEfforts[] = {
        {"none", Think::kOff},    {"minimal", Think::kLow}, {"low", Think::kLow},
        {"medium", Think::kHigh}, {"high", Think::kHigh},   {"xhigh", Think::kXhigh},
        {"ultra", Think::kMax},   {"max", Think::kMax}};
    const std::string_view name = effort->is_string() ? std::string_view(effort->get_string()) : "";
    const auto* const found = std::find_if(std::begin(kEfforts), std::end(kEfforts),
                                           [&](const auto& entry) { return entry.first == name; });
    if (found == std::end(kEfforts)) {
      return wrong(
          "reasoning_effort must be one of none, minimal, low, medium, high, xhigh, ultra, max");
    }
    if (!is_on) is_on = found->second != Think::kOff;
    if (found->second != Think::kOff) level = found->second;
  }
  if (is_on) *out = *is_on ? level : Think::kOff;
  return {};
}

Status refuse_unsupported(const json::object& body) {
  const json::value* tools = find(body, "tools");
  if (tools != nullptr && !(tools->is_array() && tools->get_array().empty())) {
    return wrong("tools are not supported yet; leave `tools` out");
  }
  if (const json::value* format = find(body, "response_format")) {
    const json::object* object = format->if_object();
    const json::value* type = object != nullptr ? find(*object, "type") : nullptr;
    if (type == nullptr || *type != "text") {
      return wrong("only response_format {\"type\": \"text\"} is supported yet");
    }
  }
  return {};
}

Result<ChatRequest> read_request(std::string_view text) {
  FATHOM_ASSIGN(const json::value root, parse_json(text));
  ChatRequest request;
  if (const json::array* list = root.if_array()) {
    FATHOM_ASSIGN(request.messages, read_messages(*list));
    return request;
  }
  const json::object* body = root.if_object();
  const json::value* list = body != nullptr ? find(*body, "messages") : nullptr;
  if (list == nullptr || !list->is_array()) {
    return wrong("expected a list of messages, or an object with a list `messages`");
  }
  FATHOM_TRY(refuse_unsupported(*body));
  FATHOM_ASSIGN(request.messages, read_messages(list->get_array()));
  FATHOM_TRY(read_think(*body, &request.think));
  FATHOM_TRY(read_float(*body, "temperature", &request.temperature));
  FATHOM_TRY(read_float(*body, "top_p", &request.top_p));
  FATHOM_TRY(read_float(*body, "presence_penalty", &request.presence_penalty));
  FATHOM_TRY(read_float(*body, "frequency_penalty", &request.frequency_penalty));
  FATHOM_TRY(read_max_tokens(*body, &request.max_tokens));
  FATHOM_TRY(read_seed(*body, &request.seed));
  FATHOM_TRY(read_stop(*body, &request.stop));
  return request;
}

}  // namespace

Result<ChatRequest> parse_chat_request(std::string_view json, std::string_view where) {
  Result<ChatRequest> request = read_request(json);
  if (!request) return std::move(request).error().with_context(where);
  return request;
}

}  // namespace fathom::codec
