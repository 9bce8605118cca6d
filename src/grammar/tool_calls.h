// The structural tag (the compiler's own JSON form) for tool calls in DSML.
//
// Private to this folder.  Thread: any; a pure function.
#pragma once

#include <string>

#include "fathom/constraint.h"
#include "fathom/status.h"

namespace fathom::grammar {

// Of a Constraint of kind kToolCalls.  Arguments of strict tools, and of all tools if calls are
// required, follow the schema; where a tool that is not strict has a schema that cannot be held to,
// its arguments are any object.  Errors (kInvalidArgument) name the tool.
Result<std::string> tool_call_tag(const Constraint& constraint, int max_whitespace);

}  // namespace fathom::grammar
