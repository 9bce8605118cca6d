#include "codec/output/event_json.h"

#include <array>

#include "codec/json_text.h"
#include "codec/output/dsml_tags.h"
#include "codec/unicode_utf8.h"

namespace fathom::codec {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kInputPrefix = "{\"input\":\"";  // white space may stand between

// Tokens that are no UTF-8 by themselves are shown as \xHH for each byte.
std::string shown_token(std::string_view bytes) {
  if (valid_utf8_prefix(bytes) == bytes.size()) return std::string(bytes);
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += "\\x";
    text.push_back(kHexDigits[value >> 4]);
    text.push_back(kHexDigits[value & 15]);
  }
  return text;
}

void write_candidate(const TokenLogprob::Candidate& token, JsonWriter* json) {
  json->member("token", shown_token(token.bytes)).key("logprob").number(token.logprob);
  json->key("bytes").begin_array();
  for (const char byte : token.bytes) json->count(static_cast<unsigned char>(byte));
  json->end_array();
}

// The value of four hexadecimal digits at `text`; -1 if they are none.
int hex4(std::string_view text) {
  int value = 0;
  for (const char c : text.substr(0, 4)) {
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      value = value * 16 + (c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + (lower - 'a' + 10);
    } else {
      return -1;
    }
  }
  return value;
}

bool is_high_surrogate(int unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low_surrogate(int unit) { return unit >= 0xDC00 && unit < 0xE000; }

}  // namespace

void JsonWriter::separate() {
  if (comma_) out_->push_back(',');
  comma_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_->push_back(bracket);
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_->push_back(bracket);
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  out_->append("\"").append(name).append("\":");
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  separate();
  append_json_string(text, out_);
  return *this;
}

JsonWriter& JsonWriter::integer(int64_t value) { return raw(std::to_string(value)); }
JsonWriter& JsonWriter::count(uint64_t value) { return raw(std::to_string(value)); }
JsonWriter& JsonWriter::boolean(bool value) { return raw(value ? "true" : "false"); }
JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::number(double number) { return value(JsonValue(number)); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_->append(json);
  return *this;
}

JsonWriter& JsonWriter::value(const JsonValue& value) {
  separate();
  append_json(value, JsonStyle::kCompact, out_);
  return *this;
}

void write_logprobs(std::span<const TokenLogprob> logprobs, JsonWriter* json) {
  json->begin_array();
  for (const TokenLogprob& logprob : logprobs) {
    json->begin_object();
    write_candidate(logprob.token, json);
    json->key("top_logprobs").begin_array();
    for (const TokenLogprob::Candidate& candidate : logprob.top) {
      json->begin_object();
      write_candidate(candidate, json);
      json->end_object();
    }
    json->end_array().end_object();
  }
  json->end_array();
}

void CustomToolInput::push(std::string_view json, std::string* out) {
  for (size_t i = 0; i < json.size(); ++i) {
    switch (state_) {
      case State::kPrefix:
        push_prefix(json[i], out);
        break;
      case State::kString:
        push_string(json[i], out);
        break;
      case State::kDone:
        return;
      case State::kVerbatim:
        out->append(json.substr(i));
        return;
    }
  }
}

void CustomToolInput::push_prefix(char byte, std::string* out) {
  held_.push_back(byte);
  if (byte == kInputPrefix[prefix_bytes_]) {
    if (++prefix_bytes_ == kInputPrefix.size()) {
      held_.clear();
      state_ = State::kString;
    }
    return;
  }
  const bool within_key = prefix_bytes_ >= 2 && prefix_bytes_ <= 7;
  if (is_json_space(byte) && !within_key) return;
  out->append(held_);
  held_.clear();
  state_ = State::kVerbatim;
}

void CustomToolInput::push_string(char byte, std::string* out) {
  if (held_.empty() && byte == '"') {
    state_ = State::kDone;
    return;
  }
  if (held_.empty() && byte != '\\') {
    out->push_back(byte);
    return;
  }
  held_.push_back(byte);
  if (decode_escape(out)) held_.clear();
}

// True if the escape in held_ is whole and was appended; one that is none is appended as it is.
bool CustomToolInput::decode_escape(std::string* out) {
  if (held_.size() < 2) return false;
  if (held_[1] != 'u') {
    static constexpr std::string_view kNames = "\"\\/bfnrt";
    static constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
    const size_t at = kNames.find(held_[1]);
    if (at == std::string_view::npos) {
      out->append(held_);
    } else {
      out->push_back(kBytes[at]);
    }
    return true;
  }
  if (held_.size() < 6) return false;
  const int first = hex4(std::string_view(held_).substr(2));
  if (!is_high_surrogate(first)) {
    if (first < 0 || is_low_surrogate(first)) {
      out->append(held_);
    } else {
      append_utf8(static_cast<uint32_t>(first), out);
    }
    return true;
  }
  if (held_.size() < 12) return false;
  const int second =
      held_[6] == '\\' && held_[7] == 'u' ? hex4(std::string_view(held_).substr(8)) : -1;
  if (is_low_surrogate(second)) {
    append_utf8(static_cast<uint32_t>(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)), out);
  } else {
    out->append(held_);
  }
  return true;
}

void CustomToolInput::finish(std::string* out) {
  if (state_ != State::kDone) out->append(held_);
  held_.clear();
  state_ = State::kDone;
}

}  // namespace fathom::codec
