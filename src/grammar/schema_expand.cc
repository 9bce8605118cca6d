#include <algorithm>

#include "grammar/limits.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_normalizer.h"

namespace fathom::grammar {
namespace {

// Nodes that merging may copy; a schema that needs more is a product of alternatives.
constexpr int64_t kMaxCopiedNodes = 400000;

int64_t num_nodes(const Json& json) {
  int64_t sum = 1;
  for (const Json& item : json.items) sum += num_nodes(item);
  for (const auto& member : json.members) sum += num_nodes(member.second);
  return sum;
}

// A reference and nothing that restricts beside it.
bool is_pure_reference(const Json& schema) {
  return schema.find("$ref") != nullptr &&
         std::all_of(schema.members.begin(), schema.members.end(), [](const auto& member) {
           return member.first == "$ref" || is_annotation(member.first);
         });
}

Json without(const Json& schema, std::string_view keyword) {
  Json out = schema;
  out.erase(keyword);
  return out;
}

// A schema that holds beside others.  What it says of unevaluated members and items is about its
// own only, so it becomes their ordinary form here, before all are one.
Result<Json> as_part(const Json& schema, const std::string& where) {
  constexpr std::pair<const char*, const char*> kForms[] = {
      {"unevaluatedProperties", "additionalProperties"}, {"unevaluatedItems", "items"}};
  Json out = schema;
  for (const auto& [keyword, plain_form] : kForms) {
    const Json* found = schema.find(keyword);
    if (found == nullptr) continue;
    for (const char* applied : {"$ref", "allOf", "anyOf", "oneOf"}) {
      if (schema.find(applied) == nullptr) continue;
      return schema_error(where, quote_json(keyword) + " beside " + quote_json(applied) +
                                     " cannot be held to in a schema that itself holds beside "
                                     "others; put it into the outermost of them");
    }
    out.erase(keyword);
    if (schema.find(plain_form) == nullptr) out.set(plain_form, *found);
  }
  return out;
}

// A $ref somewhere in it.
bool has_reference(const Json& json) {
  const Json* found = json.find("$ref");
  return (found != nullptr && found->is_string()) ||
         std::any_of(json.items.begin(), json.items.end(), has_reference) ||
         std::any_of(json.members.begin(), json.members.end(),
                     [](const auto& member) { return has_reference(member.second); });
}

// The $id of the first schema below the root that has one and references: these are about that
// schema, not about the whole.
const Json* embedded_id(const Json& json, bool is_root) {
  const Json* id = json.find("$id");
  if (!is_root && id != nullptr && id->is_string() && !id->text.starts_with('#') &&
      has_reference(json)) {
    return id;
  }
  for (const Json& part : json.items) {
    if (const Json* found = embedded_id(part, false)) return found;
  }
  for (const auto& member : json.members) {
    if (const Json* found = embedded_id(member.second, false)) return found;
  }
  return nullptr;
}

// "%41" and "~1" of a reference.
std::string decoded(std::string_view step) {
  std::string out;
  for (size_t i = 0; i < step.size(); ++i) {
    if (step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1')) {
      out += step[++i] == '0' ? '~' : '/';
    } else if (step[i] == '%' && i + 2 < step.size()) {
      out +=
          static_cast<char>(std::strtol(std::string(step.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += step[i];
    }
  }
  return out;
}

}  // namespace

Result<Json> SchemaNormalizer::run() {
  if (const Json* id = embedded_id(root_, true)) {
    return schema_error("#", "a $ref below the $id " + quote_json(id->text.substr(0, 200)) +
                                 " is about that schema alone and cannot be followed; take out "
                                 "this $id and write the $ref from the beginning of the whole");
  }
  FATHOM_ASSIGN(std::optional<Json> out, node(root_, {"#", 0, use_ == SchemaUse::kDsml ? 0 : 9}));
  if (!out) return schema_error("#", "no value fulfils it");
  for (const auto& [name, impossible] : impossible_) {
    if (impossible && definitions_.contains(name)) {
      return schema_error("#", "a $ref leads to a schema that no value fulfils");
    }
  }
  if (definitions_.empty()) return *std::move(out);
  Json definitions = Json::object();
  for (auto& [name, schema] : definitions_) definitions.set(name, std::move(schema));
  if (out->is(Json::Kind::kBool)) return *std::move(out);
  out->set("$defs", std::move(definitions));
  return *std::move(out);
}

Status SchemaNormalizer::spend(const Json& copied, const std::string& where) {
  num_copied_ += num_nodes(copied);
  if (num_copied_ <= kMaxCopiedNodes) return Status();
  return schema_error(where,
                      "allOf, anyOf and references multiply to more than the limit; write the "
                      "schema with fewer alternatives");
}

Status SchemaNormalizer::spend_states(int64_t count, const std::string& where) {
  num_states_ += count;
  if (num_states_ <= kMaxTotalCount) return Status();
  return schema_error(where, "lengths, counts and names of the schema add up to more than " +
                                 std::to_string(kMaxTotalCount) + "; give smaller ones");
}

SchemaNormalizer::Emitted SchemaNormalizer::node(const Json& schema, const Place& at) {
  if (++num_nodes_ > kMaxSchemaNodes) {
    return schema_error(at.path, "there are more than " + std::to_string(kMaxSchemaNodes) +
                                     " sub-schemas; give a smaller schema");
  }
  if (at.depth > kMaxDepth) {
    return schema_error(at.path.substr(0, 80), "nested more than " + std::to_string(kMaxDepth) +
                                                   " levels deep; use $ref or flatten it");
  }
  if (schema.is(Json::Kind::kBool)) {
    if (!schema.boolean) return std::optional<Json>();
    return std::optional<Json>(Json::object());
  }
  if (!schema.is_object()) return schema_error(at.path, "must be an object, true or false");
  FATHOM_TRY(check_keywords(schema, at.path));
  if (is_pure_reference(schema)) return reference(schema.find("$ref")->text, at);
  return conjunction({schema}, at);
}

SchemaNormalizer::Emitted SchemaNormalizer::conjunction(std::vector<Json> parts, const Place& at) {
  // Opens references and allOf until nothing but plain keywords and alternatives is left.
  for (size_t i = 0; i < parts.size();) {
    if (parts.size() > 1000) return schema_error(at.path, "too many schemas hold at once");
    if (!parts[i].is_object()) {
      ++i;
      continue;
    }
    FATHOM_TRY(check_keywords(parts[i], at.path));
    if (const Json* ref = parts[i].find("$ref")) {
      FATHOM_ASSIGN(const Json* target, resolve(ref->text, at.path));
      Json rest = without(parts[i], "$ref");
      FATHOM_TRY(spend(*target, at.path));
      FATHOM_ASSIGN(parts[i], as_part(*target, at.path));
      parts.push_back(std::move(rest));
    } else if (const Json* all = parts[i].find("allOf")) {
      const Json list = *all;
      FATHOM_TRY(spend(list, at.path));
      parts[i].erase("allOf");
      if (list.items.size() == 1 && parts.size() == 1 &&
          std::all_of(parts[i].members.begin(), parts[i].members.end(),
                      [](const auto& member) { return is_annotation(member.first); })) {
        return node(list.items.front(), at.in("allOf/0", false));
      }
      for (const Json& part : list.items) {
        FATHOM_ASSIGN(Json one, as_part(part, at.path));
        parts.push_back(std::move(one));
      }
    } else {
      ++i;
    }
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const char* keyword : {"anyOf", "oneOf"}) {
      const Json* found = parts[i].find(keyword);
      if (found == nullptr) continue;
      const Json options = *found;
      parts[i].erase(keyword);
      return alternatives(options, keyword[0] == 'o', std::move(parts), at);
    }
  }
  Json merged = Json::of(true);
  for (const Json& part : parts) {
    FATHOM_TRY(spend(part, at.path));
    FATHOM_ASSIGN(merged, merge_schemas(merged, part, at.path));
  }
  if (merged.is_bool(false)) return std::optional<Json>();
  return plain(merged.is_object() ? merged : Json::object(), at);
}

SchemaNormalizer::Emitted SchemaNormalizer::alternatives(const Json& options, bool exclusive,
                                                         std::vector<Json> rest, const Place& at) {
  const char* keyword = exclusive ? "oneOf" : "anyOf";
  std::erase_if(rest, [](const Json& part) {
    return part.is_object() && std::all_of(part.members.begin(), part.members.end(),
                                           [](const auto& m) { return is_annotation(m.first); });
  });
  std::vector<Json> choices = options.items;
  if (exclusive) {
    // What holds beside all options often says the type that they leave out.
    const Json* type = nullptr;
    for (const Json& part : rest) {
      if (type == nullptr) type = part.find("type");
    }
    for (size_t i = 0; i < choices.size(); ++i) {
      for (size_t j = 0; j < choices.size(); ++j) {
        if (i == j) continue;
        FATHOM_ASSIGN(choices[i], require_difference(options, i, j, choices[i], type, at.path));
      }
    }
  }
  Json list = Json::array();
  for (size_t i = 0; i < choices.size(); ++i) {
    const Place inner = at.in(keyword + ('/' + std::to_string(i)), false);
    Emitted one = std::optional<Json>();
    if (rest.empty()) {
      one = node(choices[i], inner);
    } else {
      std::vector<Json> parts = rest;
      for (const Json& part : parts) FATHOM_TRY(spend(part, at.path));
      FATHOM_ASSIGN(Json choice, as_part(choices[i], at.path));
      parts.push_back(std::move(choice));
      if (inner.depth > kMaxDepth)
        return schema_error(at.path, "alternatives are nested too deeply");
      if (++num_nodes_ > kMaxSchemaNodes) return schema_error(at.path, "too many sub-schemas");
      one = conjunction(std::move(parts), inner);
    }
    if (!one) return std::move(one).error();
    if (one->has_value()) list.items.push_back(**std::move(one));
  }
  if (list.items.empty()) return std::optional<Json>();
  if (list.items.size() == 1) return std::optional<Json>(std::move(list.items.front()));
  Json out = Json::object();
  out.set("anyOf", std::move(list));
  return std::optional<Json>(std::move(out));
}

// Option i, such that none of its values of that type is one of option j.
Result<Json> SchemaNormalizer::require_difference(const Json& options, size_t i, size_t j,
                                                  const Json& a, const Json* type,
                                                  const std::string& where) {
  FATHOM_ASSIGN(Json x, resolved(a, where));
  if (type != nullptr && x.is_object() && x.find("type") == nullptr) x.set("type", *type);
  FATHOM_ASSIGN(const Json y, resolved(options.items[j], where));
  if (are_disjoint(x, y, 0)) return a;
  // A member that tells them apart if it is there: let it be there.
  const Json* of_x = x.find("properties");
  if (of_x != nullptr && y.find("properties") != nullptr) {
    for (const auto& member : of_x->members) {
      Json trial = x;
      const Json* required = x.find("required");
      Json names = required != nullptr ? *required : Json::array();
      names.items.push_back(Json::of(member.first));
      trial.set("required", std::move(names));
      FATHOM_TRY(spend(trial, where));
      if (are_disjoint(trial, y, 0)) return trial;
    }
  }
  return schema_error(where,
                      "oneOf: a value may fulfil options " + std::to_string(j) + " and " +
                          std::to_string(i) +
                          " at once; use anyOf, or give them a member with different const values");
}

Result<Json> SchemaNormalizer::resolved(const Json& schema, const std::string& where) const {
  Json out = schema;
  for (int i = 0; i < kMaxDepth; ++i) {
    if (!is_pure_reference(out)) return out;
    FATHOM_ASSIGN(const Json* target, resolve(out.find("$ref")->text, where));
    out = *target;
  }
  return schema_error(where, "$ref leads around in a circle");
}

Result<const Json*> SchemaNormalizer::resolve(const std::string& reference,
                                              const std::string& where) const {
  if (reference != "#" && !reference.starts_with("#/")) {
    return schema_error(where, "$ref " + quote_json(reference.substr(0, 200)) +
                                   " is not within this schema; only # and #/... are followed");
  }
  const Json* at = &root_;
  size_t begin = 2;
  while (begin <= reference.size() && reference.size() > 1) {
    const size_t end = std::min(reference.find('/', begin), reference.size());
    const std::string step = decoded(std::string_view(reference).substr(begin, end - begin));
    const Json* next = nullptr;
    if (at->is_array()) {
      const size_t index = std::strtoul(step.c_str(), nullptr, 10);
      if (index < at->items.size() && std::to_string(index) == step) next = &at->items[index];
    } else if (at->members.size() <= static_cast<size_t>(kMaxSchemaNodes)) {
      next = at->find(step);
    }
    if (next == nullptr) {
      return schema_error(where, "$ref " + quote_json(reference.substr(0, 200)) + " leads nowhere");
    }
    at = next;
    begin = end + 1;
  }
  return at;
}

SchemaNormalizer::Emitted SchemaNormalizer::reference(const std::string& pointer, const Place& at) {
  // Definitions of DSML parameters differ by where they stand.
  const std::string key = pointer + (at.level <= 1 ? "@" + std::to_string(at.level) : "");
  const auto known = names_.find(key);
  const std::string name =
      known != names_.end() ? known->second : "d" + std::to_string(names_.size());
  if (known == names_.end()) {
    names_.emplace(key, name);
    FATHOM_ASSIGN(const Json target, resolved(Json{.kind = Json::Kind::kObject,
                                                   .text = {},
                                                   .items = {},
                                                   .members = {{"$ref", Json::of(pointer)}}},
                                              at.path));
    FATHOM_ASSIGN(std::optional<Json> emitted, node(target, {pointer, at.depth + 1, at.level}));
    impossible_[name] = !emitted.has_value();
    if (emitted) {
      // The compiler reads no sub-schema `true` behind a reference.
      definitions_[name] = *std::move(emitted);
    }
  }
  const auto done = impossible_.find(name);
  if (done != impossible_.end() && done->second) return std::optional<Json>();
  if (done == impossible_.end()) definitions_.try_emplace(name, Json::object());
  Json out = Json::object();
  out.set("$ref", Json::of("#/$defs/" + name));
  return std::optional<Json>(std::move(out));
}

Result<Json> normalize_schema(const Json& schema, SchemaUse use) {
  return SchemaNormalizer(schema, use).run();
}

}  // namespace fathom::grammar
