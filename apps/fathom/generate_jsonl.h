// fathom generate --jsonl IN --out OUT: many questions, answered side by side, written in the order
// of the file.
#pragma once

#include "fathom/status.h"
#include "options.h"

namespace fathom::app {

// A line that cannot be answered gets a result with "error"; the others go on.  OUT gets its name
// when it is whole.  kInternal if some line failed.
Status generate_jsonl(const GenerateOptions& options);

}  // namespace fathom::app
