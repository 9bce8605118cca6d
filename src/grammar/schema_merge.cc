#include "grammar/schema_merge.h"

#include <algorithm>
#include <numeric>

#include "grammar/schema_keywords.h"

namespace fathom::grammar {
namespace {

bool contains(const TypeSet& types, std::string_view type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

TypeSet common_types(const TypeSet& a, const TypeSet& b) {
  TypeSet out;
  for (const std::string& type : a) {
    if (contains(b, type)) {
      out.push_back(type);
    } else if ((type == "integer" && contains(b, "number")) ||
               (type == "number" && contains(b, "integer"))) {
      out.emplace_back("integer");
    }
  }
  return out;
}

bool have_common_type(const TypeSet& a, const TypeSet& b) { return !common_types(a, b).empty(); }

// The values of enum and const; null: not finite.
const Json* finite_values(const Json& schema, Json* holder) {
  if (const Json* value = schema.find("const")) {
    *holder = Json::array();
    holder->items.push_back(*value);
    return holder;
  }
  return schema.find("enum");
}

bool holds(const Json& values, const Json& value) {
  return std::any_of(values.items.begin(), values.items.end(),
                     [&value](const Json& v) { return v.equals(value); });
}

Json both(const Json& a, const Json& b) {
  if (a.is_bool(true) || a.equals(b)) return b;
  if (b.is_bool(true)) return a;
  if (a.is_bool(false) || b.is_bool(false)) return Json::of(false);
  Json list = Json::array();
  list.items = {a, b};
  Json out = Json::object();
  out.set("allOf", std::move(list));
  return out;
}

// Properties of both; those of one side must also satisfy what the other says of its unnamed ones.
void merge_properties(const Json& a, const Json& b, Json* out) {
  const Json empty = Json::object();
  const Json* of_a = a.find("properties");
  const Json* of_b = b.find("properties");
  if (of_a == nullptr) of_a = &empty;
  if (of_b == nullptr) of_b = &empty;
  const Json* others_a = a.find("additionalProperties");
  const Json* others_b = b.find("additionalProperties");
  Json merged = Json::object();
  for (const auto& [name, schema] : of_a->members) {
    const Json* twin = of_b->find(name);
    const Json* limit = twin != nullptr ? twin : others_b;
    merged.members.emplace_back(name, limit != nullptr ? both(schema, *limit) : schema);
  }
  for (const auto& [name, schema] : of_b->members) {
    if (of_a->find(name) != nullptr) continue;
    merged.members.emplace_back(name, others_a != nullptr ? both(schema, *others_a) : schema);
  }
  if (!merged.members.empty()) out->set("properties", std::move(merged));
}

void merge_required(const Json& other, Json* out) {
  const Json* names = out->find("required");
  Json merged = names != nullptr ? *names : Json::array();
  for (const Json& name : other.items) {
    if (!holds(merged, name)) merged.items.push_back(name);
  }
  out->set("required", std::move(merged));
}

bool is_lower_bound(std::string_view keyword) {
  return keyword.starts_with("min") || keyword == "exclusiveMinimum";
}
bool is_bound(std::string_view keyword) {
  return keyword.starts_with("min") || keyword.starts_with("max") ||
         keyword == "exclusiveMinimum" || keyword == "exclusiveMaximum";
}

// One keyword that both have.
Status merge_keyword(const std::string& name, const Json& value, const std::string& where,
                     Json* out) {
  const Json& mine = *out->find(name);
  if (mine.equals(value) || is_annotation(name)) return Status();
  if (is_bound(name)) {
    const bool takes_theirs = (value.number() > mine.number()) == is_lower_bound(name);
    if (takes_theirs) out->set(name, value);
    return Status();
  }
  if (name == "type") {
    Json list = Json::array();
    for (std::string& type :
         common_types(*types_of(*out), *types_of(Json{.kind = Json::Kind::kObject,
                                       .text = {},
                                       .items = {},
                                       .members = {{"type", value}}}))) {
      list.items.push_back(Json::of(std::move(type)));
    }
    if (list.items.empty()) {
      *out = Json::of(false);
    } else {
      out->set("type", std::move(list));
    }
    return Status();
  }
  if (name == "enum") {
    Json kept = Json::array();
    for (const Json& v : mine.items) {
      if (holds(value, v)) kept.items.push_back(v);
    }
    if (kept.items.empty()) {
      *out = Json::of(false);
    } else {
      out->set("enum", std::move(kept));
    }
    return Status();
  }
  if (name == "items" || name == "additionalProperties" || name == "unevaluatedProperties" ||
      name == "unevaluatedItems") {
    out->set(name, both(mine, value));
    return Status();
  }
  if (name == "uniqueItems") {
    out->set(name, Json::of(true));
    return Status();
  }
  if (name == "multipleOf" && mine.integer() && value.integer() && *mine.integer() > 0 &&
      *value.integer() > 0 && *mine.integer() <= 1 << 20 && *value.integer() <= 1 << 20) {
    out->set(name, Json::of_number(std::lcm(*mine.integer(), *value.integer())));
    return Status();
  }
  return schema_error(where,
                      "two different " + quote_json(name) +
                          " hold at once (by allOf, or beside $ref or anyOf); write them as one");
}

// const as enum, so that there is one form of finite values.
Json with_enum(const Json& schema) {
  const Json* value = schema.find("const");
  if (value == nullptr) return schema;
  Json list = Json::array();
  const Json* listed = schema.find("enum");
  const bool possible = listed == nullptr || holds(*listed, *value);
  list.items.push_back(*value);
  Json out = schema;
  out.erase("const");
  out.set("enum", std::move(list));
  return possible ? out : Json::of(false);
}

}  // namespace

std::optional<TypeSet> types_of(const Json& schema) {
  const Json* type = schema.find("type");
  if (type == nullptr) return std::nullopt;
  TypeSet out;
  if (type->is_string()) out.push_back(type->text);
  for (const Json& item : type->items) {
    if (!contains(out, item.text)) out.push_back(item.text);
  }
  if (contains(out, "number")) std::erase(out, "integer");
  return out;
}

bool has_type(const Json& value, const std::string& type) {
  switch (value.kind) {
    case Json::Kind::kNull:
      return type == "null";
    case Json::Kind::kBool:
      return type == "boolean";
    case Json::Kind::kNumber:
      return type == "number" || (type == "integer" && value.integer());
    case Json::Kind::kString:
      return type == "string";
    case Json::Kind::kArray:
      return type == "array";
    case Json::Kind::kObject:
      return type == "object";
  }
  return false;
}

Result<Json> merge_schemas(const Json& first, const Json& second, const std::string& where) {
  if (first.is_bool(true)) return second;
  if (second.is_bool(true)) return first;
  const Json a = first.is_object() ? with_enum(first) : first;
  const Json b = second.is_object() ? with_enum(second) : second;
  if (a.is_bool(false) || b.is_bool(false)) return Json::of(false);
  const bool has_patterns =
      a.find("patternProperties") != nullptr || b.find("patternProperties") != nullptr;
  const bool has_names =
      (a.find("properties") != nullptr || a.find("additionalProperties") != nullptr) &&
      (b.find("properties") != nullptr || b.find("additionalProperties") != nullptr);
  // What one says of the members it does not name is not about names that it has patterns for.
  const auto patterns_meet_rest = [](const Json& x, const Json& y) {
    const Json* rest = y.find("additionalProperties");
    return x.find("patternProperties") != nullptr && y.find("patternProperties") == nullptr &&
           rest != nullptr && !rest->is_bool(true);
  };
  if ((has_patterns && has_names) || patterns_meet_rest(a, b) || patterns_meet_rest(b, a)) {
    return schema_error(where,
                        "patternProperties cannot be joined with the properties of another "
                        "schema (by allOf, or beside $ref or anyOf)");
  }
  const auto has_tuple = [](const Json& s) { return s.find("prefixItems") != nullptr; };
  const auto has_items = [](const Json& s) {
    return s.find("items") != nullptr || s.find("prefixItems") != nullptr;
  };
  if ((has_tuple(a) && has_items(b)) || (has_tuple(b) && has_items(a))) {
    return schema_error(where, "prefixItems cannot be joined with the items of another schema");
  }
  Json out = a;
  for (const auto& [name, value] : b.members) {
    if (name == "properties") continue;
    if (name == "required") {
      merge_required(value, &out);
    } else if (out.find(name) == nullptr) {
      out.set(name, value);
    } else {
      FATHOM_TRY(merge_keyword(name, value, where, &out));
    }
    if (out.is_bool(false)) return out;
  }
  merge_properties(a, b, &out);
  return out;
}

bool are_disjoint(const Json& a, const Json& b, int depth) {
  if (a.is_bool(false) || b.is_bool(false)) return true;
  if (!a.is_object() || !b.is_object() || depth > 4) return false;
  Json holder_a, holder_b;
  const Json* values_a = finite_values(a, &holder_a);
  const Json* values_b = finite_values(b, &holder_b);
  const auto types_a = types_of(a), types_b = types_of(b);
  const auto has_none_of = [](const Json& values, const TypeSet& types) {
    return std::none_of(values.items.begin(), values.items.end(), [&types](const Json& value) {
      return std::any_of(types.begin(), types.end(),
                         [&](const std::string& t) { return has_type(value, t); });
    });
  };
  if (values_a != nullptr && values_b != nullptr) {
    return std::none_of(values_a->items.begin(), values_a->items.end(),
                        [values_b](const Json& value) { return holds(*values_b, value); });
  }
  if (values_a != nullptr && types_b) return has_none_of(*values_a, *types_b);
  if (values_b != nullptr && types_a) return has_none_of(*values_b, *types_a);
  if (types_a && types_b && !have_common_type(*types_a, *types_b)) return true;
  // What is a value of both is an object if one of them says so.
  const TypeSet object = {"object"};
  if ((types_a && *types_a != object) || (types_b && *types_b != object) || !(types_a || types_b)) {
    return false;
  }
  // Objects: a member that one must have and that in the other is something else, or forbidden.
  const Json* of_a = a.find("properties");
  const Json* of_b = b.find("properties");
  const auto forbids = [](const Json& schema, const Json* properties, const std::string& name) {
    const Json* others = schema.find("additionalProperties");
    return others != nullptr && others->is_bool(false) &&
           schema.find("patternProperties") == nullptr &&
           (properties == nullptr || properties->find(name) == nullptr);
  };
  const auto test = [&](const Json& x, const Json& y, const Json* of_x, const Json* of_y) {
    const Json* required = x.find("required");
    if (required == nullptr) return false;
    return std::any_of(required->items.begin(), required->items.end(), [&](const Json& name) {
      if (forbids(y, of_y, name.text)) return true;
      if (of_x == nullptr || of_y == nullptr) return false;
      const Json* in_x = of_x->find(name.text);
      const Json* in_y = of_y->find(name.text);
      return in_x != nullptr && in_y != nullptr && are_disjoint(*in_x, *in_y, depth + 1);
    });
  };
  return test(a, b, of_a, of_b) || test(b, a, of_b, of_a);
}

}  // namespace fathom::grammar
