// The command line of `fathom parse`.
#pragma once

#include <functional>

#include "command.h"
#include "parse.h"

namespace fathom::app {

// Adds the command to `root`; it fills `*o` and sets `*run`, which live as long as `root`.
void add_parse(Command root, ParseOptions* o, std::function<int()>* run);

}  // namespace fathom::app
