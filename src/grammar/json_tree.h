// JSON of a schema as a tree: members in order, numbers as they were written.
//
// Thread: any; plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fathom/status.h"

namespace fathom::grammar {

struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  using Member = std::pair<std::string, Json>;

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;  // kString: the string; kNumber: its JSON spelling
  std::vector<Json> items;
  std::vector<Member> members;

  static Json of(bool value);
  static Json of(std::string value);
  static Json of_number(int64_t value);
  static Json object() { return {.kind = Kind::kObject, .text = {}, .items = {}, .members = {}}; }
  static Json array() { return {.kind = Kind::kArray, .text = {}, .items = {}, .members = {}}; }

  bool is(Kind k) const { return kind == k; }
  bool is_object() const { return kind == Kind::kObject; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_bool(bool value) const { return kind == Kind::kBool && boolean == value; }

  // The member `key`; null if there is none.  Valid until the object changes.
  const Json* find(std::string_view key) const;
  void set(std::string key, Json value);  // replaces, or appends
  void erase(std::string_view key);

  // A number's value.  The integer: also of 3.0 and 1e3; nullopt: none, or beyond int64.
  double number() const;
  std::optional<int64_t> integer() const;

  // Equal as JSON Schema has it: 1 and 1.0 are equal, the order of members does not count.
  bool equals(const Json& other) const;
};

// Errors (kInvalidArgument; `what` names the text): no JSON, a key twice in one object, more than
// kMaxDepth levels (schemas nest two levels of JSON each: 2 * kMaxDepth + 8), a number that is no
// double, more than kMaxTextBytes.
Result<Json> parse_json(std::string_view text, std::string_view what);

// Compact JSON.
std::string write_json(const Json& value);
// A string as a JSON literal with its quotes.
std::string quote_json(std::string_view text);

}  // namespace fathom::grammar
