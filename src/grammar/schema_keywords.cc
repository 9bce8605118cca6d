#include "grammar/schema_keywords.h"

#include <algorithm>
#include <array>

#include "grammar/limits.h"

namespace fathom::grammar {
namespace {

enum class Form {
  kAnnotation,
  kSchema,
  kSchemas,    // a non-empty array of schemas
  kSchemaMap,  // an object of schemas
  kTypes,
  kAnything,
  kList,   // a non-empty array
  kNames,  // an array of strings
  kCount,  // a whole number >= 0
  kNumber,
  kText,
  kFlag,
  kRefused,
};

struct Row {
  std::string_view name;
  Form form;
  KeywordScope scope = KeywordScope::kAny;
  std::string_view advice = "";  // kRefused
};

constexpr auto kRows = std::to_array<Row>({
    {"type", Form::kTypes},
    {"enum", Form::kList},
    {"const", Form::kAnything},
    {"$ref", Form::kText},
    {"allOf", Form::kSchemas},
    {"anyOf", Form::kSchemas},
    {"oneOf", Form::kSchemas},
    {"minimum", Form::kNumber, KeywordScope::kNumber},
    {"maximum", Form::kNumber, KeywordScope::kNumber},
    {"exclusiveMinimum", Form::kNumber, KeywordScope::kNumber},
    {"exclusiveMaximum", Form::kNumber, KeywordScope::kNumber},
    {"multipleOf", Form::kNumber, KeywordScope::kNumber},
    {"minLength", Form::kCount, KeywordScope::kString},
    {"maxLength", Form::kCount, KeywordScope::kString},
    {"pattern", Form::kText, KeywordScope::kString},
    {"format", Form::kText},
    {"items", Form::kSchema, KeywordScope::kArray},
    {"prefixItems", Form::kSchemas, KeywordScope::kArray},
    {"unevaluatedItems", Form::kSchema, KeywordScope::kArray},
    {"minItems", Form::kCount, KeywordScope::kArray},
    {"maxItems", Form::kCount, KeywordScope::kArray},
    {"uniqueItems", Form::kFlag, KeywordScope::kArray},
    {"properties", Form::kSchemaMap, KeywordScope::kObject},
    {"patternProperties", Form::kSchemaMap, KeywordScope::kObject},
    {"additionalProperties", Form::kSchema, KeywordScope::kObject},
    {"unevaluatedProperties", Form::kSchema, KeywordScope::kObject},
    {"propertyNames", Form::kSchema, KeywordScope::kObject},
    {"required", Form::kNames, KeywordScope::kObject},
    {"minProperties", Form::kCount, KeywordScope::kObject},
    {"maxProperties", Form::kCount, KeywordScope::kObject},
    {"$defs", Form::kAnnotation},
    {"definitions", Form::kAnnotation},
    {"$schema", Form::kAnnotation},
    {"$id", Form::kAnnotation},
    {"id", Form::kAnnotation},
    {"$anchor", Form::kAnnotation},
    {"$comment", Form::kAnnotation},
    {"$vocabulary", Form::kAnnotation},
    {"title", Form::kAnnotation},
    {"description", Form::kAnnotation},
    {"default", Form::kAnnotation},
    {"example", Form::kAnnotation},
    {"examples", Form::kAnnotation},
    {"deprecated", Form::kAnnotation},
    {"readOnly", Form::kAnnotation},
    {"writeOnly", Form::kAnnotation},
    {"contentEncoding", Form::kAnnotation},
    {"contentMediaType", Form::kAnnotation},
    {"contentSchema", Form::kAnnotation},
    {"discriminator", Form::kAnnotation},
    {"externalDocs", Form::kAnnotation},
    {"xml", Form::kAnnotation},
    {"not", Form::kRefused, KeywordScope::kAny, "say what is allowed instead"},
    {"if", Form::kRefused, KeywordScope::kAny, "use anyOf with one option for each case"},
    {"then", Form::kRefused, KeywordScope::kAny, "use anyOf with one option for each case"},
    {"else", Form::kRefused, KeywordScope::kAny, "use anyOf with one option for each case"},
    {"dependentRequired", Form::kRefused, KeywordScope::kAny,
     "use anyOf with one option for each case"},
    {"dependentSchemas", Form::kRefused, KeywordScope::kAny,
     "use anyOf with one option for each case"},
    {"dependencies", Form::kRefused, KeywordScope::kAny, "use anyOf with one option for each case"},
    {"contains", Form::kRefused, KeywordScope::kAny, "use prefixItems for items at known places"},
    {"minContains", Form::kRefused, KeywordScope::kAny,
     "use prefixItems for items at known places"},
    {"maxContains", Form::kRefused, KeywordScope::kAny,
     "use prefixItems for items at known places"},
    {"additionalItems", Form::kRefused, KeywordScope::kAny, "use prefixItems and items"},
    {"nullable", Form::kRefused, KeywordScope::kAny, "write \"type\": [TYPE, \"null\"]"},
    {"$dynamicRef", Form::kRefused, KeywordScope::kAny, "use $ref"},
    {"$dynamicAnchor", Form::kRefused, KeywordScope::kAny, "use $ref"},
    {"$recursiveRef", Form::kRefused, KeywordScope::kAny, "use $ref"},
    {"$recursiveAnchor", Form::kRefused, KeywordScope::kAny, "use $ref"},
});

const Row* find_row(std::string_view keyword) {
  const auto* row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.name == keyword; });
  return row == kRows.end() ? nullptr : row;
}

bool is_schema(const Json& value) { return value.is_object() || value.is(Json::Kind::kBool); }

bool is_type_name(const Json& value) {
  constexpr std::string_view kTypes[] = {"null",   "boolean", "integer", "number",
                                         "string", "array",   "object"};
  return value.is_string() &&
         std::find(std::begin(kTypes), std::end(kTypes), value.text) != std::end(kTypes);
}

// What the value must be; empty: it is.
std::string_view form_fault(const Row& row, const Json& value) {
  const auto all = [&value](auto&& test) {
    return std::all_of(value.items.begin(), value.items.end(), test);
  };
  switch (row.form) {
    case Form::kSchema:
      return is_schema(value) ? "" : "must be a schema (an object, true or false)";
    case Form::kSchemas:
      return value.is_array() && !value.items.empty() && all(is_schema)
                 ? ""
                 : "must be a list of schemas, not empty";
    case Form::kSchemaMap:
      return value.is_object() && std::all_of(value.members.begin(), value.members.end(),
                                              [](const auto& m) { return is_schema(m.second); })
                 ? ""
                 : "must be an object of schemas";
    case Form::kTypes:
      return is_type_name(value) || (value.is_array() && !value.items.empty() && all(is_type_name))
                 ? ""
                 : "must be null, boolean, integer, number, string, array, object or a list of "
                   "them";
    case Form::kList:
      return value.is_array() && !value.items.empty() ? "" : "must be a list, not empty";
    case Form::kNames:
      return value.is_array() && all([](const Json& v) { return v.is_string(); })
                 ? ""
                 : "must be a list of strings";
    case Form::kCount:
      return value.integer().value_or(-1) >= 0 ? "" : "must be a whole number of at least 0";
    case Form::kNumber:
      return value.is(Json::Kind::kNumber) ? "" : "must be a number";
    case Form::kText:
      return value.is_string() ? "" : "must be a string";
    case Form::kFlag:
      return value.is(Json::Kind::kBool) ? "" : "must be true or false";
    default:
      return "";
  }
}

}  // namespace

Status schema_error(std::string_view where, const std::string& why) {
  return Status(StatusCode::kInvalidArgument, "schema at " + std::string(where) + ": " + why);
}

bool is_about(std::string_view keyword, KeywordScope scope) {
  const Row* row = find_row(keyword);
  return row != nullptr && row->scope == scope && scope != KeywordScope::kAny;
}

bool is_annotation(std::string_view keyword) {
  const Row* row = find_row(keyword);
  return keyword.starts_with("x-") || (row != nullptr && row->form == Form::kAnnotation);
}

Status check_keywords(const Json& schema, const std::string& where) {
  for (const auto& [name, value] : schema.members) {
    const Row* row = find_row(name);
    if (row == nullptr) {
      if (name.starts_with("x-")) continue;
      return schema_error(where, "the keyword " + quote_json(name) +
                                     " is not known; take it out (names with x- are ignored)");
    }
    if (row->form == Form::kRefused) {
      // Harmless forms: they restrict nothing.
      if (name == "nullable" && value.is_bool(false)) continue;
      return schema_error(where, "the output cannot be held to " + quote_json(name) + "; " +
                                     std::string(row->advice));
    }
    const size_t size = std::max(value.items.size(), value.members.size());
    if (size > static_cast<size_t>(kMaxProperties) &&
        (row->form != Form::kAnnotation || size > static_cast<size_t>(kMaxSchemaNodes))) {
      return schema_error(where, quote_json(name) + " has " + std::to_string(size) +
                                     " values, at most " + std::to_string(kMaxProperties) +
                                     " are allowed");
    }
    if (const std::string_view fault = form_fault(*row, value); !fault.empty()) {
      return schema_error(where, quote_json(name) + ' ' + std::string(fault));
    }
  }
  return Status();
}

}  // namespace fathom::grammar
