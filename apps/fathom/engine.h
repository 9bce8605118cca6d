// The model and the engine of a command.  Everything that comes from the environment is read here
// and in command_line.cc.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "assembly/instance.h"
#include "options.h"

namespace fathom::app {

using Engine = assembly::Instance;
using assembly::load_tokenizer;

// Folder of --model: "" is the demo model of the project.  kNotFound says what was looked for.
Result<std::filesystem::path> find_model(const std::string& model);

// Says on stderr that what steps cost is measured, which takes seconds, unless the hooks do.
Result<std::unique_ptr<Engine>> start_engine(const EngineOptions& options,
                                             const assembly::Hooks& hooks = {});

// For start_engine: nothing is said if `quiet`.
assembly::Hooks start_hooks(bool quiet);

}  // namespace fathom::app
