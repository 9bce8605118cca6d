#include "eval_score.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <map>
#include <optional>

#include "codec/unicode_table.h"
#include "codec/unicode_utf8.h"
#include "failure.h"

namespace fathom::app {
namespace {

namespace json = boost::json;

#define FATHOM_DSML "\uFF5CDSML\uFF5C"
constexpr std::string_view kEndThink = "</think>";
constexpr std::string_view kCalls = "<" FATHOM_DSML " calls>";
constexpr std::string_view kInvoke = "<" FATHOM_DSML " invoke name=\"";
constexpr std::string_view kInvokeEnd = "</" FATHOM_DSML " invoke>";
constexpr std::string_view kParameter = "<" FATHOM_DSML " parameter name=\"";
constexpr std::string_view kParameterEnd = "</" FATHOM_DSML " parameter>";
constexpr std::string_view kIsString = "\" string=\"true\">";
constexpr std::string_view kIsJson = "\" string=\"false\">";
#undef FATHOM_DSML

std::optional<json::value> parse(std::string_view text) {
  json::error_code error;
  json::parse_options options;
  options.max_depth = 128;
  json::value value = json::parse(text, error, {}, options);
  if (error) return std::nullopt;
  return value;
}

// A text that is equal for equal values only: keys sorted, 1, 1.0 and true apart.
void append_canonical(const json::value& v, std::string* out) {
  if (v.is_object()) {
    std::map<std::string, const json::value*> sorted;
    for (const auto& member : v.as_object()) sorted[std::string(member.key())] = &member.value();
    *out += '{';
    for (const auto& [key, value] : sorted) {
      *out += json::serialize(json::string(key)) + ":";
      append_canonical(*value, out);
      *out += ',';
    }
    *out += '}';
  } else if (v.is_array()) {
    *out += '[';
    for (const json::value& element : v.as_array()) {
      append_canonical(element, out);
      *out += ',';
    }
    *out += ']';
  } else if (v.is_double()) {
    char buffer[64];
    *out += "double ";
    out->append(buffer, std::to_chars(buffer, buffer + sizeof buffer, v.as_double()).ptr);
  } else {
    *out += json::serialize(v);
  }
}

std::string canonical(const json::value& v) {
  std::string text;
  append_canonical(v, &text);
  return text;
}

// As Python's str.strip(): Unicode white space and the separators U+001C to U+001F.
bool is_space(uint32_t c) {
  if (c >= 0x1c && c <= 0x1f) return true;
  const auto ranges = codec::white_space_ranges();
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](const auto& range) { return c >= range.first && c <= range.last; });
}

std::string_view strip(std::string_view text) {
  size_t begin = text.size();
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    int length = 0;
    const uint32_t c = codec::decode_valid_utf8(text.data() + at, &length);
    if (!is_space(c)) {
      begin = std::min(begin, at);
      end = at + static_cast<size_t>(length);
    }
    at += static_cast<size_t>(length);
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

// Cuts off and returns what comes before `mark`, and drops the mark; nullopt if it is not there.
std::optional<std::string_view> take_until(std::string_view* text, std::string_view mark) {
  const size_t at = text->find(mark);
  if (at == text->npos) return std::nullopt;
  const std::string_view before = text->substr(0, at);
  text->remove_prefix(at + mark.size());
  return before;
}

json::object parse_arguments(std::string_view body) {
  json::object arguments;
  while (take_until(&body, kParameter)) {
    const bool is_string = body.find(kIsString) < body.find(kIsJson);
    const auto name = take_until(&body, is_string ? kIsString : kIsJson);
    if (!name) break;
    const auto value = take_until(&body, kParameterEnd);
    if (!value) break;
    json::value& argument = arguments[json::string_view(name->data(), name->size())];
    if (is_string) {
      argument = json::string_view(value->data(), value->size());
    } else {
      argument = parse(*value).value_or(nullptr);
    }
  }
  return arguments;
}

json::array parse_calls(std::string_view block) {
  json::array calls;
  while (take_until(&block, kInvoke)) {
    const auto name = take_until(&block, "\">");
    if (!name) break;
    const auto body = take_until(&block, kInvokeEnd);
    if (!body) break;
    json::object call;
    call["name"] = json::string_view(name->data(), name->size());
    call["arguments"] = parse_arguments(*body);
    calls.push_back(std::move(call));
  }
  return calls;
}

bool has_image(const json::value& request) {
  const json::value* messages = request.as_object().if_contains("messages");
  if (messages == nullptr || !messages->is_array()) return false;
  for (const json::value& message : messages->as_array()) {
    const json::value* content =
        message.is_object() ? message.as_object().if_contains("content") : nullptr;
    if (content == nullptr || !content->is_array()) continue;
    for (const json::value& part : content->as_array()) {
      const json::value* type = part.is_object() ? part.as_object().if_contains("type") : nullptr;
      if (type != nullptr && *type == "image_url") return true;
    }
  }
  return false;
}

Status read_request(const json::object& object, EvalItem* item) {
  const json::value* request = object.if_contains("request");
  if (request == nullptr || !request->is_object())
    return wrong_use("\"request\" must be an object");
  item->has_image = has_image(*request);
  const json::value* thinking = request->as_object().if_contains("thinking");
  if (thinking != nullptr && thinking->is_object()) {
    const json::value* type = thinking->as_object().if_contains("type");
    item->thinking = type != nullptr && *type == "enabled";
  }
  const json::value* choice = request->as_object().if_contains("tool_choice");
  item->must_call = choice != nullptr && *choice == "required";
  return Status();
}

Status read_expected(const json::object& object, EvalItem* item) {
  const json::value* expected = object.if_contains("expected");
  const json::value* value = nullptr;
  std::string check;
  if (expected != nullptr && expected->is_object()) {
    value = expected->as_object().if_contains("value");
    const json::value* name = expected->as_object().if_contains("check");
    if (name != nullptr && name->is_string()) check = name->as_string().c_str();
  }
  if (value == nullptr || check.empty()) {
    return wrong_use("\"expected\" must have \"check\" and \"value\"");
  }
  if (check == "json_equal" || check == "tool_call_equal") {
    item->check = check == "json_equal" ? EvalCheck::kJson : EvalCheck::kCalls;
    item->json = canonical(*value);
  } else if (check == "exact" && value->is_string()) {
    item->texts.emplace_back(value->as_string());
  } else if (check == "contains" && value->is_array()) {
    item->check = EvalCheck::kContains;
    for (const json::value& text : value->as_array()) {
      if (!text.is_string()) return wrong_use("\"expected.value\" must be a list of strings");
      item->texts.emplace_back(text.as_string());
    }
  } else {
    return wrong_use("check \"" + check +
                     "\" is not exact, contains, json_equal or tool_call_equal with its value");
  }
  return Status();
}

}  // namespace

Result<EvalItem> parse_eval_item(std::string_view line) {
  if (codec::valid_utf8_prefix(line) != line.size()) return wrong_use("not UTF-8");
  const std::optional<json::value> root = parse(line);
  if (!root || !root->is_object()) return wrong_use("not a JSON object");
  const json::object& object = root->as_object();
  EvalItem item;
  for (const auto& [name, out] :
       {std::pair("id", &item.id), std::pair("category", &item.category),
        std::pair("prompt", &item.prompt), std::pair("reference", &item.reference)}) {
    const json::value* v = object.if_contains(name);
    if (v == nullptr || !v->is_string()) {
      return wrong_use("\"" + std::string(name) + "\" must be a string");
    }
    *out = v->as_string().c_str();
  }
  FATHOM_TRY(read_request(object, &item));
  FATHOM_TRY(read_expected(object, &item));
  return item;
}

bool is_right(const EvalItem& item, std::string_view text) {
  if (item.thinking && !take_until(&text, kEndThink)) return false;
  std::string_view content = text;
  std::string_view block = text;
  if (item.must_call) {
    content = {};
  } else if (const auto before = take_until(&block, kCalls)) {
    content = *before;
  } else {
    block = {};
  }
  content = strip(content);
  switch (item.check) {
    case EvalCheck::kExact:
      return content == strip(item.texts.front());
    case EvalCheck::kContains:
      return std::all_of(item.texts.begin(), item.texts.end(), [&](const std::string& wanted) {
        return content.find(wanted) != content.npos;
      });
    case EvalCheck::kJson: {
      const std::optional<json::value> value = parse(content);
      return value && canonical(*value) == item.json;
    }
    case EvalCheck::kCalls:
      return canonical(parse_calls(block)) == item.json;
  }
  return false;
}

}  // namespace fathom::app
