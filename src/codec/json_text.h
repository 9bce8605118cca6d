// JSON text of requests, prompts and answers: reading into JsonValue and writing in the styles that
// the model and clients see.
//
// Thread: any; pure functions.
#pragma once

#include <string>
#include <string_view>

#include "codec/json_value.h"
#include "fathom/status.h"

namespace fathom::codec {

// Levels of arrays and objects that are accepted.
inline constexpr int kMaxJsonDepth = 127;

// Reads one JSON value with white space around it.  A repeated key keeps its first position and
// last value.  A lone surrogate escape becomes U+FFFD.  Error (kInvalidArgument, with line and
// column): anything else that is not JSON, invalid UTF-8, a byte order mark, a number beyond the
// range of double, or more than kMaxJsonDepth levels.
Result<JsonValue> parse_json(std::string_view text);

enum class JsonStyle {
  kCompact,   // no spaces: responses, events, constraints
  kPython,    // separators ", " and ": ", and small numbers as Python writes them: V4.1 prompts
  kPythonV4,  // the same separators with compact numbers: V4 prompts
};

// Nothing but quotes, backslashes and control characters below 0x20 is escaped.
void append_json(const JsonValue& value, JsonStyle style, std::string* out);
std::string write_json(const JsonValue& value, JsonStyle style);
// Takes the bytes that compact JSON of the value has (at least: escapes are not counted, and a
// number or literal is one byte) off *left. False: there are not so many, and no more of the value
// was looked at than that shows.
bool take_json_bytes(const JsonValue& value, size_t* left);
// A string with its quotes.  Bytes that are not UTF-8 are copied as they are.
void append_json_string(std::string_view text, std::string* out);
// The same without the quotes.
void append_json_escaped(std::string_view text, std::string* out);

}  // namespace fathom::codec
