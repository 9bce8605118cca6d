// Checks the types of a request before it is converted, as a typed deserializer would: the first
// thing that is not as the protocol says is remembered, the rest of the checks does nothing.  Code
// that runs after a successful check may rely on the types (the accessors at the end).
//
// Private to the request readers.  Thread: one object a request.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "codec/json_value.h"
#include "fathom/status.h"

namespace fathom::codec {

class ShapeCheck {
 public:
  bool ok() const { return error_.empty(); }
  // "invalid request body: WHERE: what"
  Status status() const;
  void fail(const std::string& where, std::string_view what);

 private:
  std::string error_;
};

// A place in the request: a value, or nothing where an optional field is absent or null.  Lives no
// longer than its parent.
class Shape {
 public:
  Shape(ShapeCheck* check, const JsonValue& root) : check_(check), value_(&root) {}

  // The member `key` of an object; absent and null are the same.
  Shape optional(std::string_view key) const;
  // The same, but absence is an error (null is left to the check of the type).
  Shape required(std::string_view key) const;
  Shape element(size_t index) const;

  bool present() const { return value_ != nullptr; }
  const JsonValue& value() const { return *value_; }

  // Each checks the type of a value that is present, and tells whether it is present and right.
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_bool() const;
  bool is_number() const;                                             // float or integer
  bool is_integer(uint64_t max, bool may_be_negative = false) const;  // no fraction
  bool is_one_of(std::initializer_list<std::string_view> names) const;
  // A string or a list.  What `expected` says is used in the error.
  bool is_string_or_list(std::string_view expected) const;

  // Calls `check_element` with each element of a list.
  template <class Check>
  void each(Check check_element) const {
    if (!is_array()) return;
    for (size_t i = 0; i < value_->if_array()->size() && check_->ok(); ++i) {
      check_element(element(i));
    }
  }
  // The same if this is a list and nothing otherwise.
  template <class Check>
  void each_if_list(Check check_element) const {
    if (present() && value_->if_array() != nullptr) each(check_element);
  }

  bool fail(std::string_view what) const;

 private:
  Shape(const Shape* parent, std::string_view key, size_t index, const JsonValue* value)
      : check_(parent->check_), parent_(parent), key_(key), index_(index), value_(value) {}
  std::string where() const;
  bool wrong_type(std::string_view expected) const;

  ShapeCheck* check_;
  const Shape* parent_ = nullptr;
  std::string_view key_;
  size_t index_ = 0;
  const JsonValue* value_ = nullptr;
};

// Accessors for checked bodies.  Absent, null or other kinds: null, "" or the fallback.
const JsonValue* field(const JsonValue& value, std::string_view key);
const JsonArray* list_field(const JsonValue& value, std::string_view key);
const std::string* string_field(const JsonValue& value, std::string_view key);
std::string_view text_field(const JsonValue& value, std::string_view key);
bool bool_field(const JsonValue& value, std::string_view key, bool fallback);

// Gives the long texts of a checked body: moved out of it if nobody needs the body any more, else
// copied.  Each text is asked for once.
class BodyTexts {
 public:
  // `owned` is the body; null: it stays as it is.
  explicit BodyTexts(JsonValue* owned) : moves_(owned != nullptr) {}
  std::string take(const std::string& text) const { return take_any(text); }
  JsonValue take(const JsonValue& value) const { return take_any(value); }
  // Of a field that is a string; "" if it is none.
  std::string take(const JsonValue& value, std::string_view key) const;

 private:
  template <class Value>
  Value take_any(const Value& value) const {
    // A part of a body that is not const.
    return moves_ ? std::move(const_cast<Value&>(value)) : value;
  }

  bool moves_;
};

}  // namespace fathom::codec
