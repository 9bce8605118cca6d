#include <algorithm>
#include <cmath>

#include "grammar/limits.h"
#include "grammar/schema_formats.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_normalizer.h"

namespace fathom::grammar {
namespace {

// Numbers of steps up to which a range with multipleOf is written out as a list.
constexpr int64_t kMaxListedMultiples = 1000;
constexpr int64_t kMaxMultipleOf = 1024;

Json typed_object(const char* type) {
  Json out = Json::object();
  out.set("type", Json::of(std::string(type)));
  return out;
}

// A schema that says nothing of types allows all; it is held to those that its keywords are about.
TypeSet implied_types(const Json& schema) {
  constexpr std::pair<KeywordScope, const char*> kScopes[] = {{KeywordScope::kObject, "object"},
                                                              {KeywordScope::kArray, "array"},
                                                              {KeywordScope::kString, "string"},
                                                              {KeywordScope::kNumber, "number"}};
  TypeSet types;
  for (const auto& [scope, type] : kScopes) {
    const bool has = std::any_of(schema.members.begin(), schema.members.end(),
                                 [s = scope](const auto& m) { return is_about(m.first, s); });
    if (has) types.emplace_back(type);
  }
  if (types.empty() && schema.find("format") != nullptr) types.emplace_back("string");
  return types;
}

int64_t num_code_points(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

}  // namespace

SchemaNormalizer::Emitted SchemaNormalizer::plain(const Json& schema, const Place& at) {
  if (schema.find("enum") != nullptr || schema.find("const") != nullptr) return values(schema, at);
  const std::optional<TypeSet> given = types_of(schema);
  const TypeSet types = given ? *given : implied_types(schema);
  if (use_ == SchemaUse::kDsml && at.level == 0) {
    if (types.empty() || std::find(types.begin(), types.end(), "object") != types.end()) {
      return object(schema, at);
    }
    return schema_error(at.path, "the parameters of a tool must be an object");
  }
  if (types.empty()) return std::optional<Json>(Json::object());
  Json list = Json::array();
  for (const std::string& type : types) {
    FATHOM_ASSIGN(std::optional<Json> one, typed(schema, type, at));
    if (one) list.items.push_back(*std::move(one));
  }
  if (list.items.empty()) return std::optional<Json>();
  if (list.items.size() == 1) return std::optional<Json>(std::move(list.items.front()));
  Json out = Json::object();
  out.set("anyOf", std::move(list));
  return std::optional<Json>(std::move(out));
}

// Those of the listed values that the other keywords allow.
SchemaNormalizer::Emitted SchemaNormalizer::values(const Json& schema, const Place& at) {
  Json list = Json::array();
  const Json* constant = schema.find("const");
  const Json* listed = schema.find("enum");
  if (constant != nullptr) list.items.push_back(*constant);
  for (const Json& value : listed != nullptr ? listed->items : std::vector<Json>()) {
    if (constant == nullptr) list.items.push_back(value);
  }
  if (constant != nullptr && listed != nullptr &&
      std::none_of(listed->items.begin(), listed->items.end(),
                   [constant](const Json& v) { return v.equals(*constant); })) {
    return std::optional<Json>();
  }
  Json kept = Json::array();
  for (Json& value : list.items) {
    FATHOM_ASSIGN(const bool fits, value_fits(value, schema, at.path));
    if (!fits) continue;
    const std::string text = write_json(value);
    value_bytes_ += text.size();
    if (++num_values_ > kMaxEnumValues || value_bytes_ > kMaxEnumBytes) {
      return schema_error(at.path, "enum and const list more than " +
                                       std::to_string(kMaxEnumValues) + " values or " +
                                       std::to_string(kMaxEnumBytes) + " bytes in all");
    }
    if (value.is(Json::Kind::kNumber) && value.number() == std::floor(value.number()) &&
        std::fabs(value.number()) > 9e15 && !value.integer()) {
      return schema_error(at.path, "the whole number " + text.substr(0, 40) + " is too large");
    }
    if (use_ == SchemaUse::kDsml && text.find("｜DSML｜") != std::string::npos) {
      return schema_error(at.path, "a value has the mark of tool calls in it");
    }
    kept.items.push_back(std::move(value));
  }
  if (kept.items.empty()) return std::optional<Json>();
  Json out = Json::object();
  out.set("enum", std::move(kept));
  return std::optional<Json>(std::move(out));
}

Result<bool> SchemaNormalizer::value_fits(const Json& value, const Json& schema,
                                          const std::string& where) const {
  const std::optional<TypeSet> types = types_of(schema);
  if (types && std::none_of(types->begin(), types->end(),
                            [&value](const std::string& t) { return has_type(value, t); })) {
    return false;
  }
  for (const auto& [name, limit] : schema.members) {
    if (is_annotation(name) || name == "type" || name == "enum" || name == "const") continue;
    if (name == "format" && !value.is_string()) continue;
    const bool is_number = value.is(Json::Kind::kNumber), is_string = value.is_string();
    if (is_about(name, KeywordScope::kNumber) && name != "multipleOf") {
      const double x = value.number(), y = limit.number();
      if (is_number &&
          ((name == "minimum" && x < y) || (name == "maximum" && x > y) ||
           (name == "exclusiveMinimum" && x <= y) || (name == "exclusiveMaximum" && x >= y))) {
        return false;
      }
    } else if (name == "minLength" || name == "maxLength") {
      const int64_t length = num_code_points(value.text), bound = limit.integer().value_or(0);
      if (is_string && (name == "minLength" ? length < bound : length > bound)) return false;
    } else if ((is_about(name, KeywordScope::kNumber) && !is_number) ||
               (is_about(name, KeywordScope::kString) && !is_string) ||
               (is_about(name, KeywordScope::kArray) && !value.is_array()) ||
               (is_about(name, KeywordScope::kObject) && !value.is_object())) {
      continue;
    } else {
      return schema_error(where, quote_json(name) +
                                     " beside enum or const cannot be checked; list only "
                                     "the values that fulfil it");
    }
  }
  return true;
}

SchemaNormalizer::Emitted SchemaNormalizer::typed(const Json& schema, const std::string& type,
                                                  const Place& at) {
  if (type == "integer") return number(schema, true, at);
  if (type == "number") return number(schema, false, at);
  if (type == "string") return string(schema, at);
  if (type == "array") return array(schema, at);
  if (type == "object") return object(schema, at);
  return std::optional<Json>(typed_object(type.c_str()));
}

SchemaNormalizer::Emitted SchemaNormalizer::number(const Json& schema, bool whole,
                                                   const Place& at) {
  if (const Json* step = schema.find("multipleOf")) {
    if (!(step->number() > 0)) return schema_error(at.path, "multipleOf must be more than 0");
    if (!step->integer()) {
      return schema_error(at.path, "multipleOf " + step->text.substr(0, 40) +
                                       " cannot be held to; only whole numbers can");
    }
    whole = true;  // a multiple of a whole number is one
  }
  if (whole) return whole_number(schema, at);
  Json out = typed_object("number");
  for (const char* keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
    if (const Json* bound = schema.find(keyword)) {
      if (std::fabs(bound->number()) > 1e15) {
        return schema_error(at.path, std::string(keyword) + " of more than 1e15 cannot be held to");
      }
      out.set(keyword, *bound);
    }
  }
  return std::optional<Json>(std::move(out));
}

SchemaNormalizer::Emitted SchemaNormalizer::whole_number(const Json& schema, const Place& at) {
  constexpr int64_t kLow = INT64_MIN, kHigh = INT64_MAX;
  int64_t low = kLow, high = kHigh;
  for (const char* keyword : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"}) {
    const Json* bound = schema.find(keyword);
    if (bound == nullptr) continue;
    const std::optional<int64_t> exact = bound->integer();
    const double value = bound->number();
    if (!exact && std::fabs(value) > 9e15) {
      return schema_error(at.path, std::string(keyword) + " is too large to be held to");
    }
    const bool is_low = std::string_view(keyword).find("inimum") != std::string_view::npos;
    int64_t limit =
        exact ? *exact : static_cast<int64_t>(is_low ? std::ceil(value) : std::floor(value));
    if (exact && keyword[0] == 'e') {
      if (limit == (is_low ? kHigh : kLow)) return std::optional<Json>();
      limit += is_low ? 1 : -1;
    }
    (is_low ? low : high) = is_low ? std::max(low, limit) : std::min(high, limit);
  }
  if (low > high) return std::optional<Json>();
  const auto has = [&schema](const char* keyword) { return schema.find(keyword) != nullptr; };
  Json out = typed_object("integer");
  if (has("minimum") || has("exclusiveMinimum")) out.set("minimum", Json::of_number(low));
  if (has("maximum") || has("exclusiveMaximum")) out.set("maximum", Json::of_number(high));
  const Json* step = schema.find("multipleOf");
  if (step == nullptr) return std::optional<Json>(std::move(out));
  const int64_t multiple = *step->integer();
  if (low == kLow && high == kHigh) {
    if (multiple > kMaxMultipleOf) {
      return schema_error(at.path, "multipleOf of more than " + std::to_string(kMaxMultipleOf) +
                                       " needs minimum and maximum");
    }
    out.set("multipleOf", *step);
    return std::optional<Json>(std::move(out));
  }
  if (low == kLow || high == kHigh || low < -(int64_t{1} << 50) || high > int64_t{1} << 50 ||
      (high - low) / multiple > kMaxListedMultiples) {
    return schema_error(at.path, "multipleOf with minimum or maximum needs both, and at most " +
                                     std::to_string(kMaxListedMultiples) +
                                     " multiples between them");
  }
  Json list = Json::array();
  int64_t first = low / multiple * multiple;
  if (first < low) first += multiple;
  for (int64_t value = first; value <= high; value += multiple) {
    list.items.push_back(Json::of_number(value));
  }
  if (list.items.empty()) return std::optional<Json>();
  Json listed = Json::object();
  listed.set("enum", std::move(list));
  return std::optional<Json>(std::move(listed));
}

Result<int64_t> SchemaNormalizer::count(const Json& schema, const char* keyword, int64_t missing,
                                        const std::string& where) const {
  const Json* value = schema.find(keyword);
  if (value == nullptr) return missing;
  const int64_t number = value->integer().value_or(0);
  if (number <= kMaxCount) return number;
  return schema_error(where, std::string(keyword) + " is " + value->text.substr(0, 40) +
                                 ", at most " + std::to_string(kMaxCount) +
                                 " can be held to; give less, or leave it out");
}

SchemaNormalizer::Emitted SchemaNormalizer::string(const Json& schema, const Place& at) {
  FATHOM_ASSIGN(const int64_t min, count(schema, "minLength", 0, at.path));
  FATHOM_ASSIGN(const int64_t max, count(schema, "maxLength", -1, at.path));
  if (max >= 0 && min > max) return std::optional<Json>();
  const Json* text = schema.find("pattern");
  const Json* format = schema.find("format");
  if (format != nullptr && format->text == "password") format = nullptr;
  if (format != nullptr && text != nullptr) {
    return schema_error(at.path, "pattern and format together cannot be held to; give one");
  }
  if (text != nullptr) return pattern(text->text, min, max, at);
  if (format != nullptr) {
    const std::string_view known = format_pattern(format->text);
    if (known.empty()) {
      return schema_error(at.path, "the format " + quote_json(format->text.substr(0, 80)) +
                                       " is not known; known are " + std::string(format_names()));
    }
    return pattern(std::string(known), min, max, at);
  }
  FATHOM_TRY(spend_states(std::max(min, max), at.path));
  Json out = typed_object("string");
  if (min == 0 && max < 0) return std::optional<Json>(std::move(out));
  if (max == 0 || (use_ == SchemaUse::kDsml && at.level <= 1)) {
    return pattern("[\\x00-\\u{10ffff}]*", min, max, at);
  }
  if (min > 0) out.set("minLength", Json::of_number(min));
  if (max >= 0) out.set("maxLength", Json::of_number(max));
  return std::optional<Json>(std::move(out));
}

SchemaNormalizer::Emitted SchemaNormalizer::pattern(const std::string& text, int64_t min,
                                                    int64_t max, const Place& at) {
  const bool raw = use_ == SchemaUse::kDsml && at.level <= 1;
  Result<Regex> regex = Regex::parse(text, raw ? RegexUse::kDsmlString : RegexUse::kJsonString);
  if (!regex) return schema_error(at.path, regex.error().message());
  if (Status fits = regex->limit_length(min, max); !fits.ok()) {
    return schema_error(at.path, fits.message());
  }
  if (regex->is_never()) return std::optional<Json>();
  FATHOM_TRY(spend_states(regex->size().states, at.path));
  if (regex->size().max == 0) {
    Json list = Json::array();
    list.items.push_back(Json::of(std::string()));
    Json out = Json::object();
    out.set("enum", std::move(list));
    return std::optional<Json>(std::move(out));
  }
  Json out = typed_object("string");
  out.set("pattern", Json::of(regex->canonical()));
  return std::optional<Json>(std::move(out));
}

}  // namespace fathom::grammar
