// The command line of `fathom serve`, and its config file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "command.h"
#include "serve.h"

namespace fathom::app {

// Adds the command to `root`; it fills `*o` and sets `*run`, which live as long as `root`.
void add_serve(Command root, ServeOptions* o, std::function<int()>* run);

// Puts the options of the file of --config before those of the command line, which so win.
// UsageError: CommandLine::read_config.
void add_config_file(const CommandLine& line, std::vector<std::string>* arguments);

}  // namespace fathom::app
