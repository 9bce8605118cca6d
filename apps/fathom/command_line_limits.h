// Options that limit what an answer is made of, and how a request is treated beside others.
#pragma once

#include <CLI/CLI.hpp>

#include "options.h"

namespace fathom::app {

void add_latency_target(CLI::App* app, EngineOptions* out);
void add_prefix_cache(CLI::App* app, EngineOptions* out);
void add_limit_options(CLI::App* app, SamplingOptions* out);

}  // namespace fathom::app
