// The operations on JSON text: numbers, stringify, json_format.
#include <array>

#include "check_vectors/ops.h"
#include "codec/json_text.h"

namespace fathom::check_vectors {

namespace {

using codec::JsonArray;
using codec::JsonObject;
using codec::JsonStyle;
using codec::JsonValue;

Outcome run_numbers(const JsonObject& vector, Context&) {
  JsonArray compact;
  JsonArray python;
  const JsonValue* numbers = vector.find("numbers");
  if (numbers == nullptr || numbers->if_array() == nullptr) {
    return Outcome::failed("internal", "no list of numbers");
  }
  for (const JsonValue& text : *numbers->if_array()) {
    const Result<JsonValue> value = codec::parse_json(*text.if_string());
    if (!value) return outcome_of(value.error());
    compact.emplace_back(codec::write_json(*value, JsonStyle::kCompact));
    python.emplace_back(codec::write_json(*value, JsonStyle::kPython));
  }
  JsonObject result;
  result.append("compact", std::move(compact));
  result.append("python", std::move(python));
  return Outcome::of(std::move(result));
}

Outcome run_stringify(const JsonObject& vector, Context&) {
  const JsonValue* value = vector.find("value");
  if (value == nullptr) return Outcome::failed("internal", "no value");
  JsonObject result;
  result.append("text", codec::write_json(*value, JsonStyle::kPython));
  return Outcome::of(std::move(result));
}

Outcome run_format(const JsonObject& vector, Context&) {
  const Result<JsonValue> value = codec::parse_json(text_of(vector, "json"));
  if (!value) return outcome_of(value.error());
  JsonObject result;
  result.append("compact", codec::write_json(*value, JsonStyle::kCompact));
  result.append("python", codec::write_json(*value, JsonStyle::kPython));
  return Outcome::of(std::move(result));
}

constexpr std::array kOps = {
    Op{"numbers", run_numbers},
    Op{"stringify", run_stringify},
    Op{"json_format", run_format},
};

}  // namespace

std::span<const Op> json_ops() { return kOps; }

}  // namespace fathom::check_vectors
