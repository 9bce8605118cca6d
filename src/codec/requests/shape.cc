#include "codec/requests/shape.h"

#include <algorithm>

namespace fathom::codec {

namespace {

std::string_view kind_name(const JsonValue& value) {
  if (value.is_null()) return "null";
  if (value.if_bool() != nullptr) return "a boolean";
  if (value.if_string() != nullptr) return "a string";
  if (value.if_array() != nullptr) return "a list";
  if (value.if_object() != nullptr) return "an object";
  if (value.if_double() != nullptr) return "a number with a fraction";
  return "an integer";
}

}  // namespace

void ShapeCheck::fail(const std::string& where, std::string_view what) {
  if (!ok()) return;
  error_ = "invalid request body: ";
  if (!where.empty()) error_.append(where).append(": ");
  error_.append(what);
}

Status ShapeCheck::status() const {
  return ok() ? Status() : Status(StatusCode::kInvalidArgument, error_);
}

Shape Shape::optional(std::string_view key) const {
  const JsonValue* value = present() ? value_->find(key) : nullptr;
  if (value != nullptr && value->is_null()) value = nullptr;
  return Shape(this, key, 0, value);
}

Shape Shape::required(std::string_view key) const {
  const JsonValue* value = present() ? value_->find(key) : nullptr;
  if (present() && value == nullptr) fail("missing field `" + std::string(key) + "`");
  return Shape(this, key, 0, value);
}

Shape Shape::element(size_t index) const {
  return Shape(this, "", index, &(*value_->if_array())[index]);
}

bool Shape::wrong_type(std::string_view expected) const {
  return fail("expected " + std::string(expected) + ", got " + std::string(kind_name(*value_)));
}

bool Shape::is_object() const {
  if (!present()) return false;
  return value_->if_object() != nullptr || wrong_type("an object");
}

bool Shape::is_array() const {
  if (!present()) return false;
  return value_->if_array() != nullptr || wrong_type("a list");
}

bool Shape::is_string() const {
  if (!present()) return false;
  return value_->if_string() != nullptr || wrong_type("a string");
}

bool Shape::is_bool() const {
  if (!present()) return false;
  return value_->if_bool() != nullptr || wrong_type("true or false");
}

bool Shape::is_number() const {
  if (!present()) return false;
  return value_->is_number() || wrong_type("a number");
}

bool Shape::is_integer(uint64_t max, bool may_be_negative) const {
  if (!present()) return false;
  if (const int64_t* integer = value_->if_int64()) {
    if (*integer < 0) return may_be_negative || fail("must not be negative");
    return static_cast<uint64_t>(*integer) <= max || fail("must be at most " + std::to_string(max));
  }
  if (const uint64_t* natural = value_->if_uint64()) {
    return *natural <= max || fail("must be at most " + std::to_string(max));
  }
  return wrong_type("an integer");
}

bool Shape::is_one_of(std::initializer_list<std::string_view> names) const {
  if (!is_string()) return false;
  if (std::find(names.begin(), names.end(), *value_->if_string()) != names.end()) return true;
  std::string what = "unknown variant `" + *value_->if_string() + "`, expected one of ";
  for (const std::string_view name : names) {
    if (name != *names.begin()) what += ", ";
    what.append("`").append(name).append("`");
  }
  return fail(what);
}

bool Shape::is_string_or_list(std::string_view expected) const {
  if (!present()) return false;
  return value_->if_string() != nullptr || value_->if_array() != nullptr || wrong_type(expected);
}

std::string Shape::where() const {
  if (parent_ == nullptr) return "";
  const std::string before = parent_->where();
  if (key_.empty()) return before + "[" + std::to_string(index_) + "]";
  return before.empty() ? std::string(key_) : before + "." + std::string(key_);
}

bool Shape::fail(std::string_view what) const {
  if (check_->ok()) check_->fail(where(), what);
  return false;
}

const JsonValue* field(const JsonValue& value, std::string_view key) {
  const JsonValue* found = value.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

const JsonArray* list_field(const JsonValue& value, std::string_view key) {
  const JsonValue* found = value.find(key);
  return found == nullptr ? nullptr : found->if_array();
}

const std::string* string_field(const JsonValue& value, std::string_view key) {
  const JsonValue* found = value.find(key);
  return found == nullptr ? nullptr : found->if_string();
}

std::string_view text_field(const JsonValue& value, std::string_view key) {
  const std::string* text = string_field(value, key);
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

std::string BodyTexts::take(const JsonValue& value, std::string_view key) const {
  const std::string* text = string_field(value, key);
  return text != nullptr ? take(*text) : std::string();
}

bool bool_field(const JsonValue& value, std::string_view key, bool fallback) {
  const JsonValue* found = value.find(key);
  const bool* boolean = found == nullptr ? nullptr : found->if_bool();
  return boolean == nullptr ? fallback : *boolean;
}

}  // namespace fathom::codec
