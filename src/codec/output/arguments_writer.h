// The JSON text of the arguments of a tool call, built from its parameters as they are parsed.
//
// What clients get is always a JSON object with distinct keys, however the output of the model is
// broken: names and strings are escaped, a value that should be JSON and is not becomes a JSON
// string, and what is open when the output ends is closed.
//
// Text that was handed out cannot be taken back, so the first `hold_bytes` of the arguments are
// kept until the call ends: within them the last value of a repeated parameter wins.  Later a
// repeated parameter is left out.  Without holding (complete answers: hold all) the text grows with
// every string value; a value that is not a string is handed out when it is whole, because only
// then it is known to be JSON.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codec/json_value.h"

namespace fathom::codec {

class ArgumentsWriter {
 public:
  struct Options {
    size_t hold_bytes = 0;
    bool python_words = false;  // True, False, None as JSON instead of as strings
  };
  explicit ArgumentsWriter(Options options) : options_(options) {}

  // New text of the arguments is appended to `out` by all of these.  A parameter is one
  // begin_parameter() and then either begin_string(), pieces and end_string(), or one json_value().
  // `properties`: the parameters of the tool, if it is known; they live until the call ends.  A
  // call whose only parameter is `arguments` or `input`, which the tool does not have, and which
  // holds an object of parameters that it has, is taken for that object.
  void begin_call(const std::vector<std::string>* properties = nullptr);
  void begin_parameter(std::string_view name, std::string* out);
  void begin_string(std::string* out);
  void string_piece(std::string_view text, std::string* out);
  void end_string(std::string* out);
  void json_value(std::string_view text, std::string* out);
  // The text between the tags of a call without parameters: taken as the arguments if it is a JSON
  // object.
  void body(std::string_view text);
  void end_call(std::string* out);
  // The same when the output ends within the value: closes what is open in it.
  void cut_json_value(std::string_view text, std::string* out);
  void cut_body(std::string_view text);

 private:
  struct Parameter {
    std::string key;    // JSON string
    std::string value;  // JSON
  };
  void append_value(std::string_view json, std::string* out);
  void release_if_long(std::string* out);
  std::string as_json(std::string_view text) const;
  bool may_wrap(std::string_view name) const;
  std::string unwrapped(const JsonObject& arguments, std::string_view name) const;
  std::string unwrapped_arguments() const;

  Options options_;
  const std::vector<std::string>* properties_ = nullptr;
  bool may_be_wrapped_ = false;  // the first parameter could hold all arguments
  std::vector<Parameter> held_;
  size_t held_bytes_ = 0;
  bool holding_ = true;
  std::string body_;
  std::unordered_map<std::string, size_t> names_;  // to its place in held_
  size_t current_ = 0;                             // in held_
  bool skipping_ = false;                          // a repeated parameter, too late
  size_t num_written_ = 0;
};

// The JSON value that `text` is the beginning of, closed: strings and containers end where the text
// does.  Empty if there is none.
std::string close_json(std::string_view text);

}  // namespace fathom::codec
