#include "codec/requests/strict_schema.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <unordered_set>
#include <vector>

namespace fathom::codec {

namespace {

using Keys = std::initializer_list<std::string_view>;

// Members that restrict nothing.  `default` of numbers is kept, as the released service does.
constexpr std::array<std::string_view, 9> kOnlyDescribe = {"$schema",    "$id",      "$comment",
                                                           "title",      "default",  "examples",
                                                           "deprecated", "readOnly", "writeOnly"};

class Normalizer {
 public:
  explicit Normalizer(StrictSchema use) : use_(use) {}

  Result<JsonValue> run(const JsonValue& schema) {
    JsonValue result = node(schema, /*is_top=*/true);
    if (!error_.empty()) return Status(StatusCode::kInvalidArgument, error_);
    const std::string* type = schema.find("type") ? schema.find("type")->if_string() : nullptr;
    if (type == nullptr || *type != "object") {
      return Status(StatusCode::kInvalidArgument,
                    use_ == StrictSchema::kToolParameters
                        ? "The top level of the function parameters schema must be an object."
                        : "The top level of the json schema must be an object.");
    }
    return result;
  }

 private:
  JsonValue fail(std::string text) {
    if (error_.empty()) error_ = std::move(text);
    return nullptr;
  }
  JsonValue invalid(const std::string& what) {
    return fail((use_ == StrictSchema::kToolParameters ? "Invalid tool parameters schema : "
                                                       : "Invalid json schema: ") +
                what);
  }

  JsonValue node(const JsonValue& schema, bool is_top) {
    const JsonObject* object = schema.if_object();
    const JsonValue* type = object != nullptr ? object->find("type") : nullptr;
    const std::string* name = type != nullptr ? type->if_string() : nullptr;
    if (name != nullptr && *name == "object") return object_node(*object, is_top);
    if (name != nullptr && *name == "string") return string_node(*object);
    if (name != nullptr && *name == "array") return array_node(*object);
    if (name != nullptr && (*name == "number" || *name == "integer")) {
      JsonObject out;
      copy(*object,
           {"type", "description", "const", "default", "minimum", "maximum", "exclusiveMinimum",
            "exclusiveMaximum", "multipleOf"},
           &out);
      return rest(*object, /*drop_format=*/true, std::move(out));
    }
    if (type != nullptr) {
      JsonObject out;
      copy(*object, {"type", "description"}, &out);
      return rest(*object, /*drop_format=*/false, std::move(out));
    }
    if (object != nullptr && object->find("anyOf") != nullptr) return any_of_node(*object);
    if (object != nullptr && object->find("$ref") != nullptr) {
      JsonObject out;
      copy(*object, {"$ref"}, &out);
      return rest(*object, /*drop_format=*/true, std::move(out));
    }
    return invalid("one of `type`, `anyOf`, `$ref` field is required");
  }

  JsonValue object_node(const JsonObject& object, bool is_top) {
    const JsonValue* additional = object.find("additionalProperties");
    if (additional != nullptr && !additional->is_null()) {
      if (additional->if_bool() == nullptr) return invalid("invalid type: map, expected a boolean");
      if (*additional->if_bool()) return fail("additionalProperties should not be true");
    }
    const JsonValue* given = object.find("properties");
    const JsonObject* properties = given != nullptr ? given->if_object() : nullptr;
    if (given != nullptr && properties == nullptr) return invalid("properties: expected a map");
    const bool is_empty = properties == nullptr || properties->empty();
    if (is_empty && !(is_top && use_ == StrictSchema::kToolParameters)) {
      return fail("An object with no properties is not allowed.");
    }
    JsonObject normalized;
    if (!is_empty) {
      for (const auto& [key, value] : *properties) normalized.append(key, node(value, false));
    }
    JsonObject out;
    out.append("type", "object");
    out.append("properties", std::move(normalized));
    out.append("additionalProperties", false);
    const JsonValue* required = object.find("required");
    if (required != nullptr && !required->is_null() && required->if_array() == nullptr) {
      return invalid("required: expected a sequence");
    }
    if (required != nullptr && required->if_array() != nullptr) {
      out.append("required", required_of(*required->if_array(), properties));
    } else if (is_empty) {
      out.append("required", JsonArray());
    }
    copy(object, {"description"}, &out);
    return rest(object, /*drop_format=*/true, std::move(out));
  }

  // All properties, in their order.
  JsonValue required_of(const JsonArray& required, const JsonObject* properties) {
    std::unordered_set<std::string_view> known;
    if (properties != nullptr) {
      for (const auto& [key, value] : *properties) known.insert(key);
    }
    std::unordered_set<std::string_view> wanted;
    for (const JsonValue& name : required) {
      const std::string* text = name.if_string();
      if (text == nullptr) continue;
      if (!known.contains(*text)) {
        return fail("Required property '" + *text + "' not found in object");
      }
      if (!wanted.insert(*text).second) return fail("Duplicate required property '" + *text + "'");
    }
    if (wanted.size() != known.size()) {
      return fail("Required properties must match all properties in the object");
    }
    JsonArray names;
    if (properties == nullptr) return names;
    for (const auto& [key, value] : *properties) names.emplace_back(key);
    return names;
  }

  JsonValue string_node(const JsonObject& object) {
    static constexpr std::array<std::string_view, 5> kFormats = {"email", "hostname", "ipv4",
                                                                 "ipv6", "uuid"};
    const JsonValue* format = object.find("format");
    const std::string* name = format != nullptr ? format->if_string() : nullptr;
    if (name != nullptr && std::find(kFormats.begin(), kFormats.end(), *name) == kFormats.end()) {
      return invalid("unknown variant `" + *name +
                     "`, expected one of `email`, `hostname`, `ipv4`, `ipv6`, `uuid`");
    }
    JsonObject out;
    copy(object, {"type", "description", "pattern", "format", "enum"}, &out);
    return rest(object, /*drop_format=*/false, std::move(out));
  }

  JsonValue array_node(const JsonObject& object) {
    const JsonValue* items = object.find("items");
    if (items == nullptr) return invalid("missing field `items`");
    JsonObject out;
    out.append("type", "array");
    out.append("items", node(*items, false));
    copy(object, {"description"}, &out);
    return rest(object, /*drop_format=*/true, std::move(out));
  }

  JsonValue any_of_node(const JsonObject& object) {
    JsonArray choices;
    if (const JsonArray* given = object.find("anyOf")->if_array()) {
      for (const JsonValue& choice : *given) choices.push_back(node(choice, false));
    }
    JsonObject out;
    out.append("anyOf", std::move(choices));
    copy(object, {"description"}, &out);
    return rest(object, /*drop_format=*/true, std::move(out));
  }

  static void copy(const JsonObject& object, Keys keys, JsonObject* out) {
    for (const std::string_view key : keys) {
      const JsonValue* value = object.find(key);
      if (value != nullptr && !value->is_null()) out->append(std::string(key), *value);
    }
  }

  // Adds what restricts and is not there yet.
  JsonValue rest(const JsonObject& object, bool drop_format, JsonObject out) {
    std::vector<std::string> there = {"required", "properties"};
    for (const auto& [key, value] : out) there.push_back(key);
    if (drop_format) there.emplace_back("format");
    for (const auto& [key, value] : object) {
      const bool describes =
          std::find(kOnlyDescribe.begin(), kOnlyDescribe.end(), key) != kOnlyDescribe.end();
      const bool is_there = std::find(there.begin(), there.end(), key) != there.end();
      if (describes || is_there || (value.is_null() && key != "const")) continue;
      if ((key == "$defs" || key == "definitions") && value.if_object() != nullptr) {
        JsonObject definitions;
        for (const auto& [name, schema] : *value.if_object()) {
          definitions.append(name, node(schema, false));
        }
        out.append(key, std::move(definitions));
      } else {
        out.append(key, value);
      }
    }
    return out;
  }

  StrictSchema use_;
  std::string error_;
};

}  // namespace

Result<JsonValue> normalize_strict_schema(const JsonValue& schema, StrictSchema use) {
  return Normalizer(use).run(schema);
}

}  // namespace fathom::codec
