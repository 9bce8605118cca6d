// JSON Schema (draft 2020-12 as far as it goes), read by our own rules and written again in the
// small part of the language that the grammar compiler holds to the letter.
//
// The compiler ignores keywords in silence, so every keyword is handled here or refused by name.
// What comes out is never wider than the schema, and sometimes narrower: keys come in the schema's
// order, objects with properties and no word on others take no others, patterns match the whole
// string.
//
// Thread: any; pure functions.
#pragma once

#include <string_view>

#include "grammar/json_tree.h"

namespace fathom::grammar {

enum class SchemaUse {
  kJson,  // a JSON value
  kDsml,  // the parameters of a call in DSML: an object
};

// Errors (kInvalidArgument, "WHERE: what, what to do"): a keyword that cannot be held to, one of
// the wrong type, more than the limits (limits.h), a schema that no value fulfils.
Result<Json> normalize_schema(const Json& schema, SchemaUse use);

}  // namespace fathom::grammar
