// A JSON value that keeps the order of object members and the class of numbers (recipe: integers
// that fit int64 or uint64 stay integers, every other number is a double).
//
// Thread: any; plain values.  Nesting is limited by the reader (json_text.h), so copies and
// destructors recurse at most that deep.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fathom::codec {

class JsonValue;
using JsonArray = std::vector<JsonValue>;

// Members in the order in which their keys first appeared.
class JsonObject {
 public:
  using Member = std::pair<std::string, JsonValue>;

  JsonObject() = default;
  // Of repeated keys the first position and the last value stay.  O(number of members).
  explicit JsonObject(std::vector<Member> members);

  // The value of `key`, or null if there is none.  Valid until the object changes.
  const JsonValue* find(std::string_view key) const;
  JsonValue* find(std::string_view key);
  // A repeated key keeps its first position and takes the new value.  O(number of members).
  void set(std::string_view key, JsonValue value);
  // Adds a member whose key is known to be new.
  void append(std::string key, JsonValue value);
  void erase(std::string_view key);

  size_t size() const;
  bool empty() const;
  std::vector<Member>::const_iterator begin() const;
  std::vector<Member>::const_iterator end() const;
  std::vector<Member>::iterator begin();
  std::vector<Member>::iterator end();
  bool operator==(const JsonObject& other) const;

 private:
  std::vector<Member> members_;
};

class JsonValue {
 public:
  JsonValue() = default;  // null
  JsonValue(std::nullptr_t) {}
  JsonValue(bool value) : value_(value) {}
  JsonValue(int value) : value_(static_cast<int64_t>(value)) {}
  JsonValue(int64_t value) : value_(value) {}
  // Values above the range of int64 stay unsigned; smaller ones become int64.
  JsonValue(uint64_t value);
  JsonValue(double value) : value_(value) {}
  JsonValue(const char* value) : value_(std::string(value)) {}
  JsonValue(std::string_view value) : value_(std::string(value)) {}
  JsonValue(std::string value) : value_(std::move(value)) {}
  JsonValue(JsonArray value) : value_(std::move(value)) {}
  JsonValue(JsonObject value) : value_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  // Each returns null if the value is of another kind.
  const bool* if_bool() const { return std::get_if<bool>(&value_); }
  const int64_t* if_int64() const { return std::get_if<int64_t>(&value_); }
  const uint64_t* if_uint64() const { return std::get_if<uint64_t>(&value_); }  // > int64 only
  const double* if_double() const { return std::get_if<double>(&value_); }
  const std::string* if_string() const { return std::get_if<std::string>(&value_); }
  const JsonArray* if_array() const { return std::get_if<JsonArray>(&value_); }
  const JsonObject* if_object() const { return std::get_if<JsonObject>(&value_); }
  std::string* if_string() { return std::get_if<std::string>(&value_); }
  JsonArray* if_array() { return std::get_if<JsonArray>(&value_); }
  JsonObject* if_object() { return std::get_if<JsonObject>(&value_); }
  bool is_number() const { return if_int64() || if_uint64() || if_double(); }

  // Becomes a T (one of the kinds above) made of `args` where it is, and gives it.
  template <class T, class... Args>
  T& emplace(Args&&... args) {
    return value_.template emplace<T>(std::forward<Args>(args)...);
  }

  // The member `key` of an object; null if this is no object or has no such member.
  const JsonValue* find(std::string_view key) const;

  // Equal kinds and values; objects compare members in order; 1 and 1.0 differ.
  bool operator==(const JsonValue& other) const { return value_ == other.value_; }

 private:
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, JsonArray, JsonObject>
      value_;
};

// Here, because they need the whole of JsonValue.
inline size_t JsonObject::size() const { return members_.size(); }
inline bool JsonObject::empty() const { return members_.empty(); }
inline auto JsonObject::begin() const -> std::vector<Member>::const_iterator {
  return members_.begin();
}
inline auto JsonObject::end() const -> std::vector<Member>::const_iterator {
  return members_.end();
}
inline auto JsonObject::begin() -> std::vector<Member>::iterator { return members_.begin(); }
inline auto JsonObject::end() -> std::vector<Member>::iterator { return members_.end(); }

}  // namespace fathom::codec
