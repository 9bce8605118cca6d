#include <algorithm>

#include "grammar/limits.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_normalizer.h"

namespace fathom::grammar {
namespace {

Json typed_object(const char* type) {
  Json out = Json::object();
  out.set("type", Json::of(std::string(type)));
  return out;
}

// What holds of members (items) that are not named: the keyword, else its unevaluated form, which
// says the same once all schemas of a place are one.
Json rest_of(const Json& schema, const char* keyword, const char* unevaluated, bool missing) {
  if (const Json* rest = schema.find(keyword)) return *rest;
  if (const Json* rest = schema.find(unevaluated)) return *rest;
  return Json::of(missing);
}

// A name that the compiler can keep apart from names that the model makes up.
bool is_plain_name(const std::string& name) {
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

}  // namespace

SchemaNormalizer::Emitted SchemaNormalizer::array(const Json& schema, const Place& at) {
  FATHOM_ASSIGN(int64_t min, count(schema, "minItems", 0, at.path));
  FATHOM_ASSIGN(int64_t max, count(schema, "maxItems", -1, at.path));
  FATHOM_TRY(spend_states(std::max(min, max), at.path));
  const Json* unique = schema.find("uniqueItems");
  if (unique != nullptr && unique->boolean && !(max >= 0 && max <= 1)) {
    return schema_error(at.path,
                        "the output cannot be held to \"uniqueItems\"; leave it out, or use an "
                        "object with one boolean for each item");
  }
  Json out = typed_object("array");
  const Json* prefix = schema.find("prefixItems");
  Json tuple = Json::array();
  if (prefix != nullptr) {
    for (size_t i = 0; i < prefix->items.size(); ++i) {
      FATHOM_ASSIGN(std::optional<Json> one,
                    node(prefix->items[i], at.in("prefixItems/" + std::to_string(i))));
      // Nothing can stand here or after.
      if (!one) {
        max = max < 0 ? static_cast<int64_t>(i) : std::min(max, static_cast<int64_t>(i));
        break;
      }
      tuple.items.push_back(*std::move(one));
    }
  }
  if (max >= 0 && static_cast<int64_t>(tuple.items.size()) > max) {
    tuple.items.resize(static_cast<size_t>(max));
  }
  const auto num_tuple = static_cast<int64_t>(tuple.items.size());
  std::optional<Json> items;
  if (max < 0 || max > num_tuple) {
    const Json rest =
        rest_of(schema, "items", "unevaluatedItems", prefix == nullptr || min > num_tuple);
    FATHOM_ASSIGN(items, node(rest, at.in("items")));
  }
  if (!items) max = num_tuple;
  if (max >= 0 && min > max) return std::optional<Json>();
  if (num_tuple > 0) out.set("prefixItems", std::move(tuple));
  if (items) {
    out.set("items", *std::move(items));
  } else {
    out.set("items", Json::of(false));
  }
  if (min > 0) out.set("minItems", Json::of_number(min));
  if (max >= 0 && max > num_tuple) out.set("maxItems", Json::of_number(max));
  return std::optional<Json>(std::move(out));
}

SchemaNormalizer::Emitted SchemaNormalizer::object(const Json& schema, const Place& at) {
  if (schema.find("patternProperties") != nullptr || schema.find("propertyNames") != nullptr) {
    return patterned_object(schema, typed_object("object"), at);
  }
  const Json* named = schema.find("properties");
  const Json* required = schema.find("required");
  const Json none = Json::object();
  Json wanted = named != nullptr ? *named : none;
  const bool says_nothing =
      wanted.members.empty() && (required == nullptr || required->items.empty());
  const bool is_silent = schema.find("additionalProperties") == nullptr &&
                         schema.find("unevaluatedProperties") == nullptr;
  const Json rest = rest_of(schema, "additionalProperties", "unevaluatedProperties", says_nothing);
  for (const Json& name : required != nullptr ? required->items : std::vector<Json>()) {
    if (wanted.find(name.text) != nullptr) continue;
    wanted.set(name.text, is_silent ? Json::of(true) : rest);
  }
  if (static_cast<int64_t>(wanted.members.size()) > kMaxProperties) {
    return schema_error(
        at.path, "an object has more than " + std::to_string(kMaxProperties) + " properties");
  }
  Json properties = Json::object();
  Json kept_required = Json::array();
  for (const auto& [name, value] : wanted.members) {
    FATHOM_ASSIGN(std::optional<Json> one, node(value, at.in("properties/" + name)));
    const bool is_required =
        required != nullptr && std::any_of(required->items.begin(), required->items.end(),
                                           [n = &name](const Json& r) { return r.text == *n; });
    if (!one && is_required) return std::optional<Json>();
    if (!one) continue;
    FATHOM_TRY(spend_states(static_cast<int64_t>(name.size()) + 1, at.path));
    properties.members.emplace_back(name, *std::move(one));
    if (is_required) kept_required.items.push_back(Json::of(name));
  }
  FATHOM_ASSIGN(std::optional<Json> others, node(rest, at.in("additionalProperties")));
  // Members that the model names may not take the names of others.  In DSML they could.
  const bool can_keep_apart =
      (use_ != SchemaUse::kDsml || at.level > 0) &&
      std::all_of(properties.members.begin(), properties.members.end(),
                  [](const auto& member) { return is_plain_name(member.first); });
  if (!properties.members.empty() && !can_keep_apart) others.reset();
  // The same for names that were taken out because nothing fulfils them.
  if (properties.members.size() < wanted.members.size()) others.reset();
  Json out = typed_object("object");
  FATHOM_TRY(
      check_property_counts(schema, properties, kept_required, others.has_value(), &out, at));
  const Json* least = out.find("minProperties");
  if (!others && least != nullptr &&
      *least->integer() > static_cast<int64_t>(properties.members.size())) {
    return std::optional<Json>();
  }
  const Json* most = out.find("maxProperties");
  if (most != nullptr && *most->integer() < static_cast<int64_t>(kept_required.items.size())) {
    return std::optional<Json>();
  }
  if (!properties.members.empty()) out.set("properties", std::move(properties));
  if (!kept_required.items.empty()) out.set("required", std::move(kept_required));
  if (others) {
    out.set("additionalProperties", others->members.empty() ? Json::of(true) : *std::move(others));
  } else {
    out.set("additionalProperties", Json::of(false));
  }
  return std::optional<Json>(std::move(out));
}

Status SchemaNormalizer::check_property_counts(const Json& schema, const Json& properties,
                                               const Json& required, bool open, Json* out,
                                               const Place& at) {
  FATHOM_ASSIGN(const int64_t min, count(schema, "minProperties", 0, at.path));
  FATHOM_ASSIGN(const int64_t max, count(schema, "maxProperties", -1, at.path));
  const auto num_required = static_cast<int64_t>(required.items.size());
  const auto num_named = static_cast<int64_t>(properties.members.size());
  if (max >= 0 && min > max)
    return schema_error(at.path, "minProperties is more than maxProperties");
  if (open && min > std::max<int64_t>(1, num_required)) {
    return schema_error(at.path,
                        "minProperties " + std::to_string(min) +
                            " cannot be held to where members of any name are allowed (a name "
                            "may come twice); list the members as required");
  }
  FATHOM_TRY(spend_states(std::max(min, max), at.path));
  if (min > num_required) out->set("minProperties", Json::of_number(min));
  if (max >= 0 && (open || max < num_named)) out->set("maxProperties", Json::of_number(max));
  return Status();
}

// Members by the pattern of their names only.
SchemaNormalizer::Emitted SchemaNormalizer::patterned_object(const Json& schema, Json out,
                                                             const Place& at) {
  if (use_ == SchemaUse::kDsml && at.level == 0) {
    return schema_error(at.path,
                        "the parameters of a tool cannot have patternProperties or propertyNames");
  }
  const Json* named = schema.find("properties");
  const Json* required = schema.find("required");
  const Json* patterns = schema.find("patternProperties");
  const Json* names = schema.find("propertyNames");
  const auto has_members = [](const Json* json) {
    return json != nullptr && !(json->members.empty() && json->items.empty());
  };
  if (names != nullptr) {
    if (has_members(named) || has_members(required) || has_members(patterns)) {
      return schema_error(at.path,
                          "propertyNames beside properties, required or patternProperties cannot "
                          "be held to; list the members as properties");
    }
    const Json rest = rest_of(schema, "additionalProperties", "unevaluatedProperties", true);
    FATHOM_ASSIGN(std::optional<Json> value, node(rest, at.in("additionalProperties")));
    std::vector<Json> parts = {*names, typed_object("string")};
    FATHOM_ASSIGN(std::optional<Json> key, conjunction(std::move(parts), at.in("propertyNames")));
    if (key && key->find("$ref") == nullptr && key->find("anyOf") != nullptr) {
      return schema_error(at.path,
                          "propertyNames with alternatives cannot be held to; use one pattern");
    }
    if (!key || !value) {
      Json empty = typed_object("object");
      empty.set("additionalProperties", Json::of(false));
      return std::optional<Json>(std::move(empty));
    }
    if (const Json* listed = key->find("enum")) {
      Json closed = Json::object();
      for (const Json& name : listed->items) closed.set(name.text, rest);
      Json rewritten = schema;
      rewritten.erase("propertyNames");
      rewritten.set("properties", std::move(closed));
      rewritten.set("additionalProperties", Json::of(false));
      return object(rewritten, at);
    }
    FATHOM_TRY(check_property_counts(schema, Json::object(), Json::array(), true, &out, at));
    out.set("propertyNames", *std::move(key));
    out.set("additionalProperties", value->members.empty() ? Json::of(true) : *std::move(value));
    return std::optional<Json>(std::move(out));
  }
  const Json rest = rest_of(schema, "additionalProperties", "unevaluatedProperties", false);
  if (patterns->members.size() != 1 || !rest.is_bool(false)) {
    return schema_error(at.path,
                        "only one pattern in patternProperties, and no additionalProperties beside "
                        "it, can be held to");
  }
  const auto& [text, value] = patterns->members.front();
  Result<Regex> regex = Regex::parse(text, RegexUse::kJsonString);
  if (!regex) return schema_error(at.path, regex.error().message());
  if (regex->is_open_ended()) {
    regex = Regex::parse("(?:" + text + ").*", RegexUse::kJsonString);
    // `^` may not stand within a group's alternatives that begin elsewhere; then the pattern is the
    // key.
    if (!regex) regex = Regex::parse(text, RegexUse::kJsonString);
  }
  const std::string prefix = regex->prefix();
  Json properties = Json::object();
  if (named != nullptr) {
    for (const auto& [name, of_name] : named->members) {
      if (!regex->is_anchored() || prefix.empty() || name.starts_with(prefix)) {
        return schema_error(at.path,
                            "the property " + quote_json(name) +
                                " may match the pattern of patternProperties; give the pattern a "
                                "^ and beginning letters that no property has");
      }
      FATHOM_ASSIGN(std::optional<Json> one, node(of_name, at.in("properties/" + name)));
      if (one) properties.members.emplace_back(name, *std::move(one));
    }
  }
  Json kept = Json::array();
  for (const Json& name : required != nullptr ? required->items : std::vector<Json>()) {
    if (properties.find(name.text) == nullptr) {
      return schema_error(at.path, "the required " + quote_json(name.text) +
                                       " is not among the properties; list it there");
    }
    kept.items.push_back(name);
  }
  FATHOM_ASSIGN(std::optional<Json> of_pattern, node(value, at.in("patternProperties")));
  FATHOM_TRY(check_property_counts(schema, properties, kept, true, &out, at));
  if (of_pattern && !regex->is_never()) {
    Json map = Json::object();
    map.set(regex->canonical(), *std::move(of_pattern));
    out.set("patternProperties", std::move(map));
  }
  if (!properties.members.empty()) out.set("properties", std::move(properties));
  if (!kept.items.empty()) out.set("required", std::move(kept));
  out.set("additionalProperties", Json::of(false));
  return std::optional<Json>(std::move(out));
}

}  // namespace fathom::grammar
