// Whether a grammar can always end.
//
// Thread: any; a pure function, linear in the grammar.
#pragma once

#include "fathom/status.h"

namespace xgrammar {
class Grammar;
}

namespace fathom::grammar {

// Error (kInvalidArgument): a rule that an answer can come into has no finite text (`root ::= "a"
// root`), so the answer could never be finished; or the grammar has too many rules to compile in
// reasonable time.
Status check_ends(const xgrammar::Grammar& grammar);

}  // namespace fathom::grammar
