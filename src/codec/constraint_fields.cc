#include "codec/constraint_fields.h"

#include <string>

#include "codec/json_text.h"

namespace fathom::codec {
namespace {

using Kind = Constraint::Kind;

Status bad(std::string_view name, std::string_view wanted) {
  return Status(StatusCode::kInvalidArgument,
                "\"" + std::string(name) + "\" must be " + std::string(wanted));
}

Status set(Constraint constraint, std::optional<Constraint>* out) {
  if (*out) {
    return Status(StatusCode::kInvalidArgument,
                  "only one of a JSON schema, json_object, regex, grammar and choice can be given");
  }
  *out = std::move(constraint);
  return Status();
}

Status read_text(std::string_view name, const JsonValue& value, Kind kind,
                 std::optional<Constraint>* out) {
  const std::string* text = value.if_string();
  if (text == nullptr) return bad(name, "a string");
  Constraint constraint;
  constraint.kind = kind;
  constraint.text = *text;
  return set(std::move(constraint), out);
}

// An object, or its JSON as a string.
Status read_schema(std::string_view name, const JsonValue& value, std::optional<Constraint>* out) {
  if (value.if_string() != nullptr) return read_text(name, value, Kind::kJsonSchema, out);
  if (value.if_object() == nullptr && value.if_bool() == nullptr) return bad(name, "a JSON schema");
  size_t left = kMaxSchemaBytes;
  if (!take_json_bytes(value, &left)) {
    return bad(name, "a schema of at most " + std::to_string(kMaxSchemaBytes) + " bytes");
  }
  Constraint constraint;
  constraint.kind = Kind::kJsonSchema;
  constraint.text = write_json(value, JsonStyle::kCompact);
  return set(std::move(constraint), out);
}

Status read_choice(std::string_view name, const JsonValue& value, std::optional<Constraint>* out) {
  const JsonArray* list = value.if_array();
  if (list == nullptr || list->empty()) return bad(name, "a list of strings");
  Constraint constraint;
  constraint.kind = Kind::kChoice;
  for (const JsonValue& choice : *list) {
    if (choice.if_string() == nullptr) return bad(name, "a list of strings");
    constraint.choices.push_back(*choice.if_string());
  }
  return set(std::move(constraint), out);
}

Status read_json_object(std::string_view name, const JsonValue& value,
                        std::optional<Constraint>* out) {
  if (value.if_bool() == nullptr) return bad(name, "true or false");
  if (!*value.if_bool()) return Status();
  Constraint constraint;
  constraint.kind = Kind::kJsonObject;
  return set(std::move(constraint), out);
}

Status read_structured(const JsonValue& value, std::optional<Constraint>* out) {
  if (value.if_object() == nullptr) return bad("structured_outputs", "an object");
  for (const auto& [name, member] : *value.if_object()) {
    if (member.is_null()) continue;
    if (name == "json") {
      FATHOM_TRY(read_schema(name, member, out));
    } else if (name == "json_object" || name == "regex" || name == "grammar" || name == "choice") {
      FATHOM_TRY(*read_constraint_field(name, member, out));
    } else {
      return Status(StatusCode::kInvalidArgument,
                    "\"structured_outputs\" has an unknown name \"" + name.substr(0, 80) +
                        "\"; it has json, json_object, regex, grammar or choice");
    }
  }
  return Status();
}

Status read_response_format(const JsonValue& value, std::optional<Constraint>* out) {
  const JsonValue* type = value.find("type");
  const std::string* kind = type != nullptr ? type->if_string() : nullptr;
  if (kind == nullptr) return bad("response_format", "an object with a type");
  if (*kind == "text") return Status();
  if (*kind == "json_object") return read_json_object(*kind, true, out);
  const JsonValue* inner = value.find(*kind);
  if (*kind == "regex" && inner != nullptr) return read_text(*kind, *inner, Kind::kRegex, out);
  const JsonValue* schema =
      *kind == "json_schema" && inner != nullptr ? inner->find("schema") : nullptr;
  if (schema != nullptr) return read_schema("schema", *schema, out);
  return bad(
      "response_format",
      "of type text, json_object, json_schema (with json_schema.schema) or regex (with regex)");
}

}  // namespace

std::optional<Status> read_constraint_field(std::string_view name, const JsonValue& value,
                                            std::optional<Constraint>* out) {
  if (name == "json_schema" || name == "guided_json") return read_schema(name, value, out);
  if (name == "json_object") return read_json_object(name, value, out);
  if (name == "regex" || name == "guided_regex") return read_text(name, value, Kind::kRegex, out);
  if (name == "grammar" || name == "guided_grammar")
    return read_text(name, value, Kind::kGrammar, out);
  if (name == "choice" || name == "guided_choice") return read_choice(name, value, out);
  if (name == "structured_outputs") return read_structured(value, out);
  if (name == "response_format") return read_response_format(value, out);
  return std::nullopt;
}

Result<std::optional<Constraint>> read_constraint_fields(const JsonValue& body) {
  std::optional<Constraint> out;
  for (const char* name :
       {"structured_outputs", "guided_json", "guided_regex", "guided_grammar", "guided_choice"}) {
    const JsonValue* value = body.find(name);
    if (value == nullptr || value->is_null()) continue;
    FATHOM_TRY(*read_constraint_field(name, *value, &out));
  }
  return out;
}

}  // namespace fathom::codec
