// The command line of `fathom serve`, and its config file.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "serve.h"

namespace fathom::app {

// Adds the command to `root`; it fills `*o` and sets `*run`, which live as long as `root`.
void add_serve(CLI::App* root, ServeOptions* o, std::function<int()>* run);

// Puts the options of the file of --config before those of the command line, which so win.  Throws
// CLI::ParseError: no such file, no TOML, an option that the command does not have.
void add_config_file(const CLI::App& root, std::vector<std::string>* arguments);

}  // namespace fathom::app
