// Two schemas that must both hold, as one.  Private to schema*.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/json_tree.h"

namespace fathom::grammar {

// Types as a set, in a fixed order; "integer" is left out beside "number".  nullopt: any type.
using TypeSet = std::vector<std::string>;
std::optional<TypeSet> types_of(const Json& schema);
bool has_type(const Json& value, const std::string& type);  // an instance

// Both schemas in one, neither of which has $ref, allOf, anyOf or oneOf at its top; where both
// restrict the same place in a way that has no keyword, that place gets an allOf.  kFalse: no value
// fulfils both. Errors: two patterns, formats, ... that cannot be one.
Result<Json> merge_schemas(const Json& a, const Json& b, const std::string& where);

// No value fulfils both: by their types, their finite values, or a required member of both.
bool are_disjoint(const Json& a, const Json& b, int depth);

}  // namespace fathom::grammar
