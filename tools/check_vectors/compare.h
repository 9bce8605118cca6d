// Compares results as JSON.
#pragma once

#include <string>

#include "codec/json_value.h"

namespace fathom::check_vectors {

// The first place where `actual` differs, as ".messages[0].content: expected X, got Y"; empty if
// there is none.  The order of object members does not matter; 1 and 1.0 differ.
std::string difference(const codec::JsonValue& expected, const codec::JsonValue& actual);

}  // namespace fathom::check_vectors
