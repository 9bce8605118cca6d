// How a command ends: exit codes, and the one line on stderr that says why.
#pragma once

#include <string>
#include <string_view>

#include "fathom/status.h"

namespace fathom::app {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitModel = 3;
inline constexpr int kExitNoRoom = 4;
inline constexpr int kExitInterrupted = 130;

int exit_code(StatusCode code);

// Prints "fathom: MESSAGE" as exactly one line on stderr; control characters become spaces.
void print_failure(std::string_view message);

// Prints the failure, if it is one, and returns its exit code.
int finish(const Status& status);

// Wrong use of an option or of a file that the user gave.
Status wrong_use(std::string message);

}  // namespace fathom::app
