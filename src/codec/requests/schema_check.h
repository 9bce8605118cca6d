// Whether a value is a JSON Schema: keywords of the right types, patterns that are regular
// expressions, references that lead somewhere within the schema.
//
// Thread: any; a pure function.
#pragma once

#include <optional>
#include <string>

#include "codec/json_value.h"

namespace fathom::codec {

// What is wrong, with the place in the schema; nullopt: nothing.  Drafts 4, 6, 7, 2019-09 and
// 2020-12 (which is assumed if `$schema` does not say).  References to other documents, and more
// than 1,000 different ones, are refused.
std::optional<std::string> schema_fault(const JsonValue& schema);

}  // namespace fathom::codec
