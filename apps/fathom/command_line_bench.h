// The command line of `fathom bench`.
#pragma once

#include <functional>

#include "bench.h"
#include "command.h"

namespace fathom::app {

// Adds the command to `root`; it fills `*o` and sets `*run`, which live as long as `root`.
void add_bench(Command root, BenchOptions* o, std::function<int()>* run);

}  // namespace fathom::app
