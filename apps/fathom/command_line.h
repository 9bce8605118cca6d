// From argv to the options of one command.  The only user of CLI11, which is slow to compile.
#pragma once

namespace fathom::app {

// Parses and runs; returns the exit code of the program.
int run_command_line(int argc, char** argv);

}  // namespace fathom::app
