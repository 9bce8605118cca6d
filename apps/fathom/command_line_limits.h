// Options that limit what an answer is made of, and how a request is treated beside others.
#pragma once

#include "command.h"
#include "options.h"

namespace fathom::app {

void add_latency_target(Command app, EngineOptions* out);
void add_prefix_cache(Command app, EngineOptions* out);
void add_drafts(Command app, EngineOptions* out);
void add_limit_options(Command app, SamplingOptions* out);

}  // namespace fathom::app
