// Bounds on a grammar's text before it is parsed, and what the parser would read as something else
// than EBNF: it has functions, attributes, look-ahead and escapes of its own, some of which it
// ignores.
//
// Thread: any; a pure function, linear in the text.
#pragma once

#include <string_view>

#include "fathom/status.h"

namespace fathom::grammar {

// Errors (kInvalidArgument): too long, groups nested too deeply, repetitions that written out are
// too many; a NUL, an escape that is no character, "(=", a rule with attributes, a name of the
// parser's functions.  Says nothing of the syntax otherwise.
Status check_ebnf(std::string_view text);

}  // namespace fathom::grammar
