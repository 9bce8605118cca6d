// Constraints in the words of vLLM's API, beside those of the protocols (response_format, tools).
//
// Thread: any; pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "codec/conversation.h"
#include "codec/json_value.h"
#include "codec/tokenizer.h"
#include "fathom/constraint.h"
#include "fathom/status.h"

namespace fathom::codec {

// The most that the grammars of src/grammar are made of.
inline constexpr size_t kMaxSchemaBytes = 256 << 10;

// A field that sets a constraint: json_schema, json_object, regex, grammar, choice,
// structured_outputs {json, json_object, regex, grammar or choice}, guided_json, guided_regex,
// guided_grammar, guided_choice, response_format.  nullopt: not such a name.  Error: a value of the
// wrong type, a schema of more than kMaxSchemaBytes, or a second constraint.
std::optional<Status> read_constraint_field(std::string_view name, const JsonValue& value,
                                            std::optional<Constraint>* out);

// Of the body of a request: structured_outputs and guided_... ; nullopt: there is none.
Result<std::optional<Constraint>> read_constraint_fields(const JsonValue& body);

}  // namespace fathom::codec
