// Writing the JSON of events: a little writer, and what the three protocols share.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "codec/json_value.h"
#include "codec/output/output_stream.h"

namespace fathom::codec {

// One server-sent event.
struct AnswerEvent {
  std::string name;  // empty: an event without a name (Chat Completions)
  std::string data;  // JSON
};

// What the answer says of itself.
struct AnswerInfo {
  std::string id;
  std::string model;
  int64_t created = 0;  // Unix time, seconds
  // Responses: what the answer goes on from, and whether a later one may go on from it.
  std::optional<std::string> previous_response_id = {};
  bool stored = false;
};

// Appends compact JSON; commas come by themselves.  The caller keeps begin and end in pairs.
class JsonWriter {
 public:
  explicit JsonWriter(std::string* out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);  // a word without anything to escape
  JsonWriter& string(std::string_view text);
  JsonWriter& integer(int64_t value);
  JsonWriter& count(uint64_t value);
  JsonWriter& boolean(bool value);
  JsonWriter& null();
  JsonWriter& number(double value);
  JsonWriter& raw(std::string_view json);
  JsonWriter& value(const JsonValue& value);

  JsonWriter& member(std::string_view name, std::string_view text) {
    return key(name).string(text);
  }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string* out_;
  bool comma_ = false;
};

// The array of {token, logprob, bytes, top_logprobs}.
void write_logprobs(std::span<const TokenLogprob> logprobs, JsonWriter* json);

// Decodes the string member `input` of an object that arrives in pieces: the input of a custom tool
// of the Responses protocol (recipe.md 4.8).  A text of any other form is passed on as it is.
class CustomToolInput {
 public:
  // Appends the part of the input that is known by now.
  void push(std::string_view json, std::string* out);
  // The end: what was held back, as it is.
  void finish(std::string* out);

 private:
  enum class State { kPrefix, kString, kDone, kVerbatim };
  void push_prefix(char byte, std::string* out);
  void push_string(char byte, std::string* out);
  bool decode_escape(std::string* out);

  State state_ = State::kPrefix;
  std::string held_;         // the prefix so far, or an escape
  size_t prefix_bytes_ = 0;  // of the prefix that are matched
};

}  // namespace fathom::codec
