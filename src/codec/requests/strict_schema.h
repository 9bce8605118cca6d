// Schemas of tools and answers that the output must follow to the letter (`strict: true`).
//
// Thread: any; a pure function.
#pragma once

#include "codec/json_value.h"
#include "fathom/status.h"

namespace fathom::codec {

enum class StrictSchema { kToolParameters, kResponseFormat };

// The schema in the form in which the model is held to it: the members of each node in a fixed
// order, no additional properties, `required` as it was given.  Keywords that only describe (title,
// examples, ...) are left out, all that restrict stay, and so do definitions.
//
// Errors (texts for clients): no object at the top, a node without type, anyOf and $ref, objects
// within that allow additional properties or have none, a list `required` that is not that of all
// properties, an unknown format.
Result<JsonValue> normalize_strict_schema(const JsonValue& schema, StrictSchema use);

}  // namespace fathom::codec
