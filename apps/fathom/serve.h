// `fathom serve`: the HTTP API over one engine.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "server/options.h"
#include "server/telemetry.h"

namespace fathom::app {

struct ServeOptions {
  EngineOptions engine;
  server::ServerOptions server;
  ImageOptions images;
  server::TelemetryOptions telemetry;
  std::vector<std::string> model_names;  // beside the name of the model's folder
  std::string keys_file;                 // "": open
  bool open_to_network = false;          // open although others can reach the host
  int drain_timeout_s = 60;
  bool quiet = false;
  bool print_config = false;
};

// Returns the exit code.
int run_serve(const ServeOptions& options);

// Every option with its value, as a config file that --config reads.
std::string serve_config(const ServeOptions& options);

}  // namespace fathom::app
