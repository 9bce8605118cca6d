// From a model folder to an engine that answers: the one place where its parts are put together.
#pragma once

#include <memory>

#include "fathom/config.h"
#include "fathom/engine.h"
#include "fathom/status.h"

namespace fathom {

// Maps the checkpoint (nothing is copied; weights are read when first used), takes the memory of
// the caches and starts the engine's threads.  The engine owns all of it; its destructor cancels
// what still runs.  It speaks token ids: text is the codec's (codec.h).  Thread: any.
//
// Errors: kInvalidArgument (a field of the config), kNotFound (no such model), kDataLoss and
// kFailedPrecondition (files that are damaged, incomplete or not of one model),
// kResourceExhausted (memory).
Result<std::unique_ptr<Engine>> open_engine(const Config& config);

}  // namespace fathom
