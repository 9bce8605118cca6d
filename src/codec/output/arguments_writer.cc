#include "codec/output/arguments_writer.h"

#include <algorithm>
#include <utility>

#include "codec/json_text.h"
#include "codec/output/dsml_tags.h"

namespace fathom::codec {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_json_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_json_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string quoted(std::string_view text) {
  std::string json;
  append_json_string(text, &json);
  return json;
}

bool is_json(std::string_view text) { return parse_json(text).has_value(); }

// Without a Markdown fence around it.
std::string_view unfenced(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with("```")) return text;
  const size_t line_end = text.find('\n');
  if (line_end == std::string_view::npos) return text;
  text.remove_prefix(line_end + 1);
  if (text.ends_with("```")) text.remove_suffix(3);
  return trimmed(text);
}

// Where the text of a cut JSON value stands.
struct JsonTail {
  std::string closers;
  bool in_string = false;
  bool escaped = false;    // the last byte is a lone backslash
  size_t last_escape = 0;  // of the string that is open
};

JsonTail json_tail(std::string_view text) {
  JsonTail tail;
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (tail.in_string) {
      if (tail.escaped) {
        tail.escaped = false;
      } else if (byte == '\\') {
        tail.escaped = true;
        tail.last_escape = i;
      } else if (byte == '"') {
        tail.in_string = false;
      }
    } else if (byte == '"') {
      tail.in_string = true;
      tail.last_escape = text.size();
    } else if (byte == '{' || byte == '[') {
      tail.closers.push_back(byte == '{' ? '}' : ']');
    } else if ((byte == '}' || byte == ']') && !tail.closers.empty()) {
      tail.closers.pop_back();
    }
  }
  return tail;
}

// `text` ends outside of strings: tries what may be missing before the closers.
std::string close_containers(std::string_view text, const std::string& closers) {
  text = trimmed(text);
  const std::string reversed(closers.rbegin(), closers.rend());
  for (int attempt = 0; attempt < 3 && !text.empty(); ++attempt) {
    std::string whole(text);
    if (text.back() == ':') whole += "null";
    if (is_json(whole + reversed)) return whole + reversed;
    if (text.back() == '"' && is_json(whole + ":null" + reversed)) {
      return whole + ":null" + reversed;  // the text ends after a key
    }
    // A comma, or a number or word that is not whole.
    const size_t size = text.size();
    if (text.back() == ',') {
      text.remove_suffix(1);
    } else {
      while (!text.empty() &&
             std::string_view(",:[]{}\" \n\t\r").find(text.back()) == std::string_view::npos) {
        text.remove_suffix(1);
      }
    }
    text = trimmed(text);
    if (text.size() == size) break;
  }
  return {};
}

}  // namespace

std::string close_json(std::string_view text) {
  const JsonTail tail = json_tail(text);
  if (!tail.in_string) return close_containers(text, tail.closers);
  std::string whole(text);
  // An escape that is not whole (\, \u12, or the first half of a pair) goes.
  if (tail.escaped) {
    whole.pop_back();
  } else if (tail.last_escape + 6 > text.size() && tail.last_escape + 1 < text.size() &&
             text[tail.last_escape + 1] == 'u') {
    whole.resize(tail.last_escape);
  }
  whole.push_back('"');
  return close_containers(whole, tail.closers);
}

void ArgumentsWriter::begin_call(const std::vector<std::string>* properties) {
  properties_ = properties;
  may_be_wrapped_ = false;
  held_.clear();
  held_bytes_ = 0;
  holding_ = true;
  body_.clear();
  names_.clear();
  skipping_ = false;
  num_written_ = 0;
}

void ArgumentsWriter::begin_parameter(std::string_view name, std::string* out) {
  const auto [place, is_new] = names_.try_emplace(std::string(name), held_.size());
  skipping_ = !is_new && !holding_;
  if (skipping_) return;
  std::string key = quoted(name);
  if (!holding_) {
    out->append(num_written_++ == 0 ? "{" : ", ").append(key).append(": ");
    return;
  }
  may_be_wrapped_ = names_.size() == 1 && may_wrap(name);
  if (is_new) {
    held_bytes_ += key.size() + 4;
    held_.push_back({std::move(key), {}});
  }
  current_ = place->second;
  held_bytes_ -= held_[current_].value.size();
  held_[current_].value.clear();
  append_value("", out);
}

void ArgumentsWriter::begin_string(std::string* out) {
  if (!skipping_) append_value("\"", out);
}

void ArgumentsWriter::string_piece(std::string_view text, std::string* out) {
  if (skipping_) return;
  std::string json;
  append_json_escaped(text, &json);
  append_value(json, out);
}

void ArgumentsWriter::end_string(std::string* out) {
  if (!skipping_) append_value("\"", out);
}

void ArgumentsWriter::json_value(std::string_view text, std::string* out) {
  if (!skipping_) append_value(as_json(text), out);
}

void ArgumentsWriter::cut_json_value(std::string_view text, std::string* out) {
  if (skipping_) return;
  const std::string closed = close_json(text);
  append_value(closed.empty() ? as_json(text) : closed, out);
}

void ArgumentsWriter::body(std::string_view text) {
  const std::string_view json = unfenced(text);
  const Result<JsonValue> value = parse_json(json);
  if (value && value->if_object() != nullptr) body_ = json;
}

void ArgumentsWriter::cut_body(std::string_view text) {
  body(text);
  if (body_.empty()) body(close_json(unfenced(text)));
}

void ArgumentsWriter::end_call(std::string* out) {
  if (const std::string arguments = unwrapped_arguments(); !arguments.empty()) {
    out->append(arguments);
    return begin_call();
  }
  if (holding_) {
    for (const Parameter& parameter : held_) {
      out->append(num_written_++ == 0 ? "{" : ", ");
      out->append(parameter.key).append(": ").append(parameter.value);
    }
  }
  out->append(num_written_ == 0 ? "{}" : "}");
  begin_call();
}

void ArgumentsWriter::append_value(std::string_view json, std::string* out) {
  if (!holding_) {
    out->append(json);
    return;
  }
  held_[current_].value.append(json);
  held_bytes_ += json.size();
  release_if_long(out);
}

void ArgumentsWriter::release_if_long(std::string* out) {
  if (held_bytes_ <= options_.hold_bytes || may_be_wrapped_) return;
  // The open parameter goes last: it may stand for an earlier one of its name.
  for (size_t i = 0; i <= held_.size(); ++i) {
    if (i == current_) continue;
    const Parameter& parameter = held_[i == held_.size() ? current_ : i];
    out->append(num_written_++ == 0 ? "{" : ", ");
    out->append(parameter.key).append(": ").append(parameter.value);
  }
  held_.clear();
  holding_ = false;
}

bool ArgumentsWriter::may_wrap(std::string_view name) const {
  if (properties_ == nullptr || properties_->empty()) return false;
  if (name != "arguments" && name != "input") return false;
  return std::find(properties_->begin(), properties_->end(), name) == properties_->end();
}

// The object in the member `name`, or in the JSON text that it holds, if all its members are
// parameters of the tool; else nothing.
std::string ArgumentsWriter::unwrapped(const JsonObject& arguments, std::string_view name) const {
  const JsonValue* value = arguments.find(name);
  if (value == nullptr || arguments.size() != 1) return {};
  Result<JsonValue> from_text = JsonValue();
  if (value->if_string() != nullptr) {
    from_text = parse_json(*value->if_string());
    if (!from_text) return {};
    value = &*from_text;
  }
  if (value->if_object() == nullptr) return {};
  for (const auto& [key, member] : *value->if_object()) {
    if (std::find(properties_->begin(), properties_->end(), key) == properties_->end()) return {};
  }
  return write_json(*value, JsonStyle::kPython);
}

// Arguments that do not stand in parameters of their own; nothing if they do.
std::string ArgumentsWriter::unwrapped_arguments() const {
  if (!holding_ || held_.size() > 1) return {};
  std::string whole = body_;
  if (held_.size() == 1) whole = "{" + held_[0].key + ": " + held_[0].value + "}";
  if (whole.empty() || (!may_be_wrapped_ && held_.size() == 1)) return {};
  const Result<JsonValue> arguments = parse_json(whole);
  const JsonObject* object = arguments ? arguments->if_object() : nullptr;
  for (const std::string_view name : {"arguments", "input"}) {
    if (object == nullptr || !may_wrap(name)) continue;
    if (std::string inner = unwrapped(*object, name); !inner.empty()) return inner;
  }
  return held_.empty() ? whole : std::string();
}

std::string ArgumentsWriter::as_json(std::string_view text) const {
  if (is_json(text)) return std::string(text);
  if (options_.python_words) {
    const std::string_view word = trimmed(text);
    if (word == "True") return "true";
    if (word == "False") return "false";
    if (word == "None") return "null";
  }
  return quoted(text);
}

}  // namespace fathom::codec
