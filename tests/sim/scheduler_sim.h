// Random traffic for the scheduler over the fake executor, all of it decided by a seed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "harness/fake_executor.h"
#include "scheduler/scheduler.h"

namespace fathom::sim {

struct SimTotals {
  int64_t steps = 0, requests = 0, tokens = 0, rows = 0, preemptions = 0, cached_tokens = 0,
          recomputed_tokens = 0, cancelled = 0, errors = 0, finished = 0, images = 0, drafted = 0,
          verified = 0, accepted = 0;
};

// Plays the traffic of `seed` without the requests in `left_out`. Returns the first fault, or
// nothing.
std::string run_simulation(uint64_t seed, const std::set<int>& left_out, SimTotals& totals);

// How many requests the traffic of a seed has.
int num_requests(uint64_t seed);

}  // namespace fathom::sim
