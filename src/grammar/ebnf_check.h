// Bounds on a grammar's text before it is parsed.
//
// Thread: any; a pure function, linear in the text.
#pragma once

#include <string_view>

#include "fathom/status.h"

namespace fathom::grammar {

// Errors (kInvalidArgument): too long, groups nested too deeply, repetitions that written out are
// too many.  Says nothing of the syntax otherwise.
Status check_ebnf_size(std::string_view text);

}  // namespace fathom::grammar
