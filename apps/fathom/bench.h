// `fathom bench`: speed of made-up weights of the release's shapes beside the floor of this
// machine.
#pragma once

#include <string>
#include <vector>

#include "device/cpu_features.h"

namespace fathom::app {

struct BenchOptions {
  std::string kind;               // "decode" or "prefill"
  std::string shape = "release";  // or "demo"
  int layers = 4;
  int experts = 32;
  std::vector<int> tokens;   // prompt lengths of prefill; empty: the standard ones
  std::vector<int> batches;  // sequences of decode; empty: the standard ones
  int threads = 0;           // 0: every CPU that this process may use
  Isa isa = Isa::kPlain;
  std::string json_file;  // "": a table only
};

// Returns the exit code.
int run_bench(const BenchOptions& options);

}  // namespace fathom::app
