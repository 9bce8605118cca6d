// Writes JSON: compact, keys in the order of the calls, numbers as short as they can be exactly.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace fathom::app {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);  // invalid UTF-8 becomes U+FFFD
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool b);
  JsonWriter& value(double number);  // null if it is not finite: JSON has no such number
  JsonWriter& value(float number);
  template <std::integral Int>
  JsonWriter& value(Int number) {
    return raw(std::to_string(number));
  }
  // Text that is JSON already.
  JsonWriter& raw(std::string_view json);

  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    key(name);
    return value(v);
  }

  const std::string& text() const { return text_; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace fathom::app
