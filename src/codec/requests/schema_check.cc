#include "codec/requests/schema_check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_set>

#include "codec/json_text.h"
#include "codec/requests/regex_syntax.h"

namespace fathom::codec {

namespace {

constexpr size_t kMaxReferences = 1000;

enum class Rule {
  kSchema,
  kSchemaOrList,
  kSchemaList,
  kSchemaMap,
  kNumber,
  kNumberOrBool,  // draft 4 has booleans there
  kPositive,
  kCount,
  kBool,
  kText,
  kPattern,
  kTexts,
  kList,
  kType,
  kReference,
};

struct Keyword {
  std::string_view name;
  Rule rule;
};

constexpr std::array kKeywords = {
    Keyword{"additionalItems", Rule::kSchema},
    Keyword{"additionalProperties", Rule::kSchema},
    Keyword{"contains", Rule::kSchema},
    Keyword{"else", Rule::kSchema},
    Keyword{"if", Rule::kSchema},
    Keyword{"not", Rule::kSchema},
    Keyword{"propertyNames", Rule::kSchema},
    Keyword{"then", Rule::kSchema},
    Keyword{"unevaluatedItems", Rule::kSchema},
    Keyword{"unevaluatedProperties", Rule::kSchema},
    Keyword{"items", Rule::kSchemaOrList},
    Keyword{"allOf", Rule::kSchemaList},
    Keyword{"anyOf", Rule::kSchemaList},
    Keyword{"oneOf", Rule::kSchemaList},
    Keyword{"prefixItems", Rule::kSchemaList},
    Keyword{"$defs", Rule::kSchemaMap},
    Keyword{"definitions", Rule::kSchemaMap},
    Keyword{"dependentSchemas", Rule::kSchemaMap},
    Keyword{"patternProperties", Rule::kSchemaMap},
    Keyword{"properties", Rule::kSchemaMap},
    Keyword{"maximum", Rule::kNumber},
    Keyword{"minimum", Rule::kNumber},
    Keyword{"exclusiveMaximum", Rule::kNumberOrBool},
    Keyword{"exclusiveMinimum", Rule::kNumberOrBool},
    Keyword{"multipleOf", Rule::kPositive},
    Keyword{"maxContains", Rule::kCount},
    Keyword{"maxItems", Rule::kCount},
    Keyword{"maxLength", Rule::kCount},
    Keyword{"maxProperties", Rule::kCount},
    Keyword{"minContains", Rule::kCount},
    Keyword{"minItems", Rule::kCount},
    Keyword{"minLength", Rule::kCount},
    Keyword{"minProperties", Rule::kCount},
    Keyword{"uniqueItems", Rule::kBool},
    Keyword{"description", Rule::kText},
    Keyword{"format", Rule::kText},
    Keyword{"title", Rule::kText},
    Keyword{"pattern", Rule::kPattern},
    Keyword{"required", Rule::kTexts},
    Keyword{"enum", Rule::kList},
    Keyword{"type", Rule::kType},
    Keyword{"$ref", Rule::kReference},
};

constexpr std::array<std::string_view, 7> kTypes = {"array",  "boolean", "integer", "null",
                                                    "number", "object",  "string"};

bool is_known_draft(std::string_view uri) {
  if (uri.ends_with('#')) uri.remove_suffix(1);
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!uri.starts_with(scheme)) continue;
    const std::string_view rest = uri.substr(scheme.size());
    for (const std::string_view draft :
         {"draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"}) {
      if (rest == "json-schema.org/" + std::string(draft) + "/schema") return true;
    }
  }
  return uri == "http://json-schema.org/schema";
}

std::string shown(const JsonValue& value) {
  constexpr size_t kShownBytes = 200;
  std::string text = write_json(value, JsonStyle::kCompact);
  if (text.size() > kShownBytes) text.resize(kShownBytes);
  return text;
}

std::optional<double> as_number(const JsonValue& value) {
  if (const int64_t* integer = value.if_int64()) return static_cast<double>(*integer);
  if (const uint64_t* natural = value.if_uint64()) return static_cast<double>(*natural);
  if (const double* number = value.if_double()) return *number;
  return std::nullopt;
}

bool is_count(const JsonValue& value) {
  const std::optional<double> number = as_number(value);
  return number && *number >= 0 && *number == static_cast<double>(static_cast<int64_t>(*number));
}

bool is_type_name(const JsonValue& value) {
  const std::string* name = value.if_string();
  return name != nullptr && std::find(kTypes.begin(), kTypes.end(), *name) != kTypes.end();
}

class Checker {
 public:
  explicit Checker(const JsonValue& root) : root_(root) {}

  std::optional<std::string> check() {
    if (const JsonValue* draft = root_.find("$schema")) {
      const std::string* uri = draft->if_string();
      if (uri == nullptr || !is_known_draft(*uri)) return "unknown draft: " + shown(*draft);
    }
    check_schema(root_, "");
    if (fault_.empty()) return std::nullopt;
    return fault_;
  }

 private:
  void fail(const std::string& place, std::string_view what) {
    if (fault_.empty()) fault_ = (place.empty() ? "" : place + ": ") + std::string(what);
  }

  void check_schema(const JsonValue& schema, const std::string& place) {
    if (!fault_.empty() || schema.if_bool() != nullptr) return;
    const JsonObject* object = schema.if_object();
    if (object == nullptr) {
      return fail(place, shown(schema) + " is not of types \"boolean\", \"object\"");
    }
    for (const auto& [key, value] : *object) {
      const auto keyword =
          std::find_if(kKeywords.begin(), kKeywords.end(),
                       [&k = key](const Keyword& known) { return known.name == k; });
      if (keyword != kKeywords.end()) check_keyword(keyword->rule, value, place + "/" + key);
      if (!fault_.empty()) return;
    }
  }

  void check_keyword(Rule rule, const JsonValue& value, const std::string& place) {
    switch (rule) {
      case Rule::kSchema:
        return check_schema(value, place);
      case Rule::kSchemaOrList:
        return value.if_array() != nullptr ? check_list(value, place) : check_schema(value, place);
      case Rule::kSchemaList:
        if (value.if_array() == nullptr || value.if_array()->empty()) {
          return fail(place, shown(value) + " is not a list of schemas");
        }
        return check_list(value, place);
      case Rule::kSchemaMap:
        return check_map(value, place);
      case Rule::kNumberOrBool:
        if (value.if_bool() != nullptr) return;
        [[fallthrough]];
      case Rule::kNumber:
        if (!value.is_number()) fail(place, shown(value) + " is not of type \"number\"");
        return;
      case Rule::kPositive:
        if (as_number(value).value_or(0) <= 0) fail(place, shown(value) + " is not above 0");
        return;
      case Rule::kCount:
        if (!is_count(value)) fail(place, shown(value) + " is not a count");
        return;
      case Rule::kBool:
        if (value.if_bool() == nullptr) fail(place, shown(value) + " is not of type \"boolean\"");
        return;
      case Rule::kText:
        if (value.if_string() == nullptr) fail(place, shown(value) + " is not of type \"string\"");
        return;
      case Rule::kList:
        if (value.if_array() == nullptr) fail(place, shown(value) + " is not of type \"array\"");
        return;
      case Rule::kPattern:
      case Rule::kTexts:
      case Rule::kType:
      case Rule::kReference:
        return check_text_keyword(rule, value, place);
    }
  }

  void check_text_keyword(Rule rule, const JsonValue& value, const std::string& place) {
    const std::string* text = value.if_string();
    const JsonArray* list = value.if_array();
    if (rule == Rule::kPattern) {
      if (text == nullptr) return fail(place, shown(value) + " is not of type \"string\"");
      // What the syntax check calls unsupported is still a pattern.
      const std::optional<std::string> what = regex_fault(*text);
      if (what && what->find("not supported") == std::string::npos) {
        fail(place, shown(value) + " is not a \"regex\": " + *what);
      }
    } else if (rule == Rule::kTexts) {
      const bool is_right =
          list != nullptr && std::all_of(list->begin(), list->end(), [](const JsonValue& element) {
            return element.if_string() != nullptr;
          });
      if (!is_right) return fail(place, shown(value) + " is not a list of strings");
      std::unordered_set<std::string_view> names;
      for (const JsonValue& name : *list) {
        if (!names.insert(*name.if_string()).second) {
          return fail(place, shown(value) + " has non-unique elements");
        }
      }
    } else if (rule == Rule::kType) {
      const bool is_right =
          is_type_name(value) || (list != nullptr && !list->empty() &&
                                  std::all_of(list->begin(), list->end(), is_type_name));
      if (!is_right) fail(place, shown(value) + " is not a type of JSON");
    } else if (text == nullptr) {
      fail(place, shown(value) + " is not of type \"string\"");
    } else {
      check_reference(*text, place);
    }
  }

  void check_list(const JsonValue& value, const std::string& place) {
    const JsonArray& list = *value.if_array();
    for (size_t i = 0; i < list.size() && fault_.empty(); ++i) {
      check_schema(list[i], place + "/" + std::to_string(i));
    }
  }

  void check_map(const JsonValue& value, const std::string& place) {
    const JsonObject* object = value.if_object();
    if (object == nullptr) return fail(place, shown(value) + " is not of type \"object\"");
    for (const auto& [key, schema] : *object) {
      check_schema(schema, place + "/" + key);
      if (!fault_.empty()) return;
    }
  }

  void check_reference(const std::string& reference, const std::string& place) {
    if (!reference.starts_with('#')) {
      return fail(place, "a reference to another document cannot be followed: " + reference);
    }
    if (!references_.insert(reference).second) return;
    if (references_.size() > kMaxReferences) return fail(place, "too many references");
    if (reference == "#") return;
    if (reference[1] != '/') {
      if (!has_anchor(root_, reference.substr(1))) {
        fail(place, "no such anchor: " + reference);
      }
      return;
    }
    if (!points_somewhere(reference.substr(2))) {
      fail(place, "pointer '" + reference.substr(1) + "' does not exist");
    }
  }

  bool points_somewhere(std::string_view pointer) const {
    const JsonValue* value = &root_;
    while (value != nullptr) {
      const size_t slash = pointer.find('/');
      const std::string token = unescaped(pointer.substr(0, slash));
      if (const JsonArray* array = value->if_array()) {
        size_t index = 0;
        const auto end = std::from_chars(token.data(), token.data() + token.size(), index);
        value = end.ec == std::errc() && index < array->size() ? &(*array)[index] : nullptr;
      } else {
        value = value->find(token);
      }
      if (slash == std::string_view::npos) break;
      pointer.remove_prefix(slash + 1);
    }
    return value != nullptr;
  }

  // ~1 is /, ~0 is ~, and %xx is a byte.
  static std::string unescaped(std::string_view token) {
    std::string text;
    for (size_t i = 0; i < token.size(); ++i) {
      int byte = 0;
      if (token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1')) {
        text.push_back(token[++i] == '1' ? '/' : '~');
      } else if (token[i] == '%' && i + 2 < token.size() &&
                 std::from_chars(&token[i + 1], &token[i + 1] + 2, byte, 16).ec == std::errc()) {
        text.push_back(static_cast<char>(byte));
        i += 2;
      } else {
        text.push_back(token[i]);
      }
    }
    return text;
  }

  static bool has_anchor(const JsonValue& value, std::string_view name) {
    if (const JsonArray* array = value.if_array()) {
      return std::any_of(array->begin(), array->end(),
                         [name](const JsonValue& element) { return has_anchor(element, name); });
    }
    const JsonObject* object = value.if_object();
    if (object == nullptr) return false;
    for (const auto& [key, member] : *object) {
      const std::string* text = member.if_string();
      const bool is_anchor = key == "$anchor" || key == "$dynamicAnchor" || key == "$id";
      if (is_anchor && text != nullptr && (*text == name || *text == "#" + std::string(name))) {
        return true;
      }
      if (has_anchor(member, name)) return true;
    }
    return false;
  }

  const JsonValue& root_;
  std::unordered_set<std::string> references_;
  std::string fault_;
};

}  // namespace

std::optional<std::string> schema_fault(const JsonValue& schema) { return Checker(schema).check(); }

}  // namespace fathom::codec
