// A compiled constraint as the control plane knows it: a number in plans, which the executor looks
// up, and something that keeps it from being forgotten.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "fathom/constraint.h"
#include "fathom/status.h"

namespace fathom {

using GrammarId = int64_t;  // 0: none

struct GrammarHandle {
  GrammarId id = 0;
  std::shared_ptr<const void> keep;  // while it lives, the executor finds the grammar
};

// Compiles, or finds what was compiled.  May take seconds; called by any thread, several at once.
// Errors (kInvalidArgument) are about this constraint.
using ConstraintCompiler = std::function<Result<GrammarHandle>(const Constraint&)>;

}  // namespace fathom
