#include "check_vectors/output_normalize.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace fathom::check_vectors {
namespace {

using codec::JsonArray;
using codec::JsonObject;
using codec::JsonValue;

constexpr int64_t kAnyTime = 1700000000;
constexpr size_t kRandomBytes = 24;  // of a call id

// "call_00_" and random letters -> "call_00_*".
void hide_random(std::string* text) {
  if (!text->starts_with("call_") || text->size() < 8 + kRandomBytes) return;
  const std::string_view random = std::string_view(*text).substr(text->size() - kRandomBytes);
  const auto is_random = [](unsigned char c) { return std::isalnum(c) != 0; };
  if (!std::all_of(random.begin(), random.end(), is_random)) return;
  text->resize(text->size() - kRandomBytes);
  text->push_back('*');
}

void hide_chance(JsonValue* value) {
  if (std::string* text = value->if_string()) return hide_random(text);
  if (JsonArray* array = value->if_array()) {
    for (JsonValue& element : *array) hide_chance(&element);
  }
  if (JsonObject* object = value->if_object()) {
    for (auto& [key, member] : *object) {
      const bool is_time = key == "created" || key == "created_at" || key == "completed_at";
      if (is_time && member.if_int64() != nullptr) {
        member = JsonValue(kAnyTime);
      } else {
        hide_chance(&member);
      }
    }
  }
}

JsonValue* member(JsonValue* value, std::string_view key) {
  JsonObject* object = value != nullptr ? value->if_object() : nullptr;
  return object != nullptr ? object->find(key) : nullptr;
}

JsonValue* first(JsonValue* value) {
  JsonArray* array = value != nullptr ? value->if_array() : nullptr;
  return array != nullptr && !array->empty() ? &array->front() : nullptr;
}

std::string_view text(JsonValue* value) {
  const std::string* string = value != nullptr ? value->if_string() : nullptr;
  return string != nullptr ? std::string_view(*string) : std::string_view();
}

// The part of an event that is cut at will, and its log probabilities; null if it has none.
struct Delta {
  JsonValue* text = nullptr;
  JsonValue* logprobs = nullptr;
};

Delta chat_delta(JsonValue* event) {
  JsonValue* choice = first(member(event, "choices"));
  JsonValue* delta = member(choice, "delta");
  if (delta == nullptr || member(delta, "role") != nullptr) return {};
  if (!text(member(choice, "finish_reason")).empty()) return {};
  if (JsonValue* call = first(member(delta, "tool_calls"))) {
    if (member(call, "id") != nullptr) return {};
    return {member(member(call, "function"), "arguments"), nullptr};
  }
  const bool is_content = !text(member(delta, "content")).empty();
  const char* kind = is_content ? "content" : "reasoning_content";
  return {member(delta, kind), member(member(choice, "logprobs"), kind)};
}

Delta delta_of(JsonValue* event) {
  if (text(member(event, "object")) == "chat.completion.chunk") return chat_delta(event);
  const std::string_view type = text(member(event, "type"));
  if (type == "content_block_delta") {
    JsonValue* delta = member(event, "delta");
    for (const std::string_view key : {"text", "thinking", "partial_json"}) {
      if (JsonValue* part = member(delta, key)) return {part, nullptr};
    }
  }
  if (type.ends_with(".delta")) return {member(event, "delta"), member(event, "logprobs")};
  return {};
}

// Appends the delta of `event` to that of `last` if nothing else tells them apart.
bool merge(JsonValue* last, JsonValue event) {
  const Delta to = delta_of(last);
  const Delta from = delta_of(&event);
  if (to.text == nullptr || from.text == nullptr || to.text->if_string() == nullptr ||
      from.text->if_string() == nullptr) {
    return false;
  }
  if ((to.logprobs == nullptr) != (from.logprobs == nullptr)) return false;
  const std::string whole = *to.text->if_string() + *from.text->if_string();
  JsonArray logprobs;
  if (to.logprobs != nullptr && to.logprobs->if_array() != nullptr) {
    logprobs = *to.logprobs->if_array();
    if (const JsonArray* more = from.logprobs->if_array()) {
      logprobs.insert(logprobs.end(), more->begin(), more->end());
    }
  }
  JsonValue previous = *last;
  for (JsonValue* either : {&previous, &event}) {
    const Delta delta = delta_of(either);
    if (delta.logprobs != nullptr) *delta.logprobs = JsonArray();
    if (JsonValue* number = member(either, "sequence_number")) *number = JsonValue(0);
    *delta.text = JsonValue("");
  }
  if (!(previous == event)) return false;
  *to.text = JsonValue(whole);
  if (to.logprobs != nullptr) *to.logprobs = JsonValue(std::move(logprobs));
  return true;
}

void merge_events(JsonArray* events) {
  JsonArray merged;
  for (JsonValue& event : *events) {
    if (!merged.empty() && merge(&merged.back(), event)) continue;
    merged.push_back(std::move(event));
  }
  for (size_t i = 0; i < merged.size(); ++i) {
    if (JsonValue* number = member(&merged[i], "sequence_number")) {
      *number = JsonValue(static_cast<int64_t>(i));
    }
  }
  *events = std::move(merged);
}

}  // namespace

void normalize_output(JsonValue* result) {
  hide_chance(result);
  JsonValue* events = member(result, "events");
  JsonArray* list = events != nullptr ? events->if_array() : nullptr;
  if (list == nullptr) return;
  // "=initial" and "=complete" stand for those objects.
  for (JsonValue& event : *list) {
    JsonValue* response = member(&event, "response");
    const std::string_view name = text(response);
    if (!name.starts_with("=")) continue;
    if (const JsonValue* whole = member(result, name.substr(1))) *response = JsonValue(*whole);
  }
  merge_events(list);
  // It stands in the first event; derived vectors do not have it again.
  result->if_object()->erase("initial");
}

}  // namespace fathom::check_vectors
