// Brings events and answers into the form in which they are compared: call ids are random, time
// stamps are those of the call, and text may be cut into deltas elsewhere.
#pragma once

#include "codec/json_value.h"

namespace fathom::check_vectors {

void normalize_output(codec::JsonValue* result);

}  // namespace fathom::check_vectors
