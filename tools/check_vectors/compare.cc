#include "check_vectors/compare.h"

#include <algorithm>

#include "codec/json_text.h"

namespace fathom::check_vectors {

namespace {

using codec::JsonValue;

constexpr size_t kShownBytes = 400;

std::string shown(const JsonValue& value) {
  std::string text = codec::write_json(value, codec::JsonStyle::kCompact);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return text;
}

// Long texts: from a little before the first byte that differs.
std::string text_difference(const std::string& expected, const std::string& actual) {
  constexpr size_t kBefore = 60;
  const auto at = std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
  const auto byte = static_cast<size_t>(at.first - expected.begin());
  const size_t begin = byte > kBefore ? byte - kBefore : 0;
  return " (from byte " + std::to_string(begin) + "): expected " + shown(expected.substr(begin)) +
         ", got " + shown(actual.substr(std::min(begin, actual.size())));
}

}  // namespace

std::string difference(const JsonValue& expected, const JsonValue& actual) {
  const auto plain = [&] { return ": expected " + shown(expected) + ", got " + shown(actual); };
  if (const codec::JsonObject* wanted = expected.if_object()) {
    const codec::JsonObject* given = actual.if_object();
    if (given == nullptr) return plain();
    for (const auto& [key, value] : *wanted) {
      const JsonValue* other = given->find(key);
      if (other == nullptr) return "." + key + ": expected " + shown(value) + ", is missing";
      if (std::string inner = difference(value, *other); !inner.empty()) return "." + key + inner;
    }
    for (const auto& [key, value] : *given) {
      if (wanted->find(key) == nullptr) return "." + key + ": not expected, got " + shown(value);
    }
    return "";
  }
  if (const codec::JsonArray* wanted = expected.if_array()) {
    const codec::JsonArray* given = actual.if_array();
    if (given == nullptr || given->size() != wanted->size()) return plain();
    for (size_t i = 0; i < wanted->size(); ++i) {
      if (std::string inner = difference((*wanted)[i], (*given)[i]); !inner.empty()) {
        return "[" + std::to_string(i) + "]" + inner;
      }
    }
    return "";
  }
  if (expected == actual) return "";
  if (expected.if_string() != nullptr && actual.if_string() != nullptr) {
    return text_difference(*expected.if_string(), *actual.if_string());
  }
  return plain();
}

}  // namespace fathom::check_vectors
