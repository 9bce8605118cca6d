// Whatever the schedule, every request gets the tokens that the model gives it alone.
//
// FATHOM_SIM_SEED=N plays one seed, FATHOM_SIM_SEEDS=N the first N.

#include "sim/scheduler_sim.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace fathom::sim {
namespace {

volatile uint64_t current_seed = 0;

// A broken invariant aborts; the seed must be known then too.
void say_seed(int) {
  char line[64];
  const int n = std::snprintf(line, sizeof line, "FATHOM_SIM_SEED=%llu\n",
                              static_cast<unsigned long long>(current_seed));
  if (n > 0 && write(STDERR_FILENO, line, static_cast<size_t>(n)) < 0) _exit(3);
}

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Leaves out requests as long as the seed still fails.
std::string shrink(uint64_t seed) {
  const int n = num_requests(seed);
  std::set<int> left_out;
  SimTotals ignored;
  for (int i = n; i-- > 0;) {
    left_out.insert(i);
    if (run_simulation(seed, left_out, ignored).empty()) left_out.erase(i);
  }
  std::string text = "FATHOM_SIM_SEED=" + std::to_string(seed) + ", requests that matter:";
  for (int i = 0; i < n; ++i) {
    if (!left_out.contains(i)) text += ' ' + std::to_string(i + 1);
  }
  return text + ": " + run_simulation(seed, left_out, ignored);
}

TEST(SchedulerSimulation, EveryRequestGetsItsOwnTokensWhateverTheSchedule) {
  std::signal(SIGABRT, say_seed);
  const uint64_t only = number_from("FATHOM_SIM_SEED", 0);
  const uint64_t last = only > 0 ? only : number_from("FATHOM_SIM_SEEDS", 400);
  SimTotals totals;
  int num_failed = 0;
  for (uint64_t seed = only > 0 ? only : 1; seed <= last && num_failed < 3; ++seed) {
    current_seed = seed;
    if (run_simulation(seed, {}, totals).empty()) continue;
    ++num_failed;
    ADD_FAILURE() << shrink(seed);
  }
  std::signal(SIGABRT, SIG_DFL);
  std::printf(
      "%lld steps, %lld requests: %lld samples finished, %lld failed, %lld requests "
      "cancelled; %lld tokens of %lld rows, %lld preemptions, %lld cached and %lld "
      "recomputed tokens, %lld images\n",
      static_cast<long long>(totals.steps), static_cast<long long>(totals.requests),
      static_cast<long long>(totals.finished), static_cast<long long>(totals.errors),
      static_cast<long long>(totals.cancelled), static_cast<long long>(totals.tokens),
      static_cast<long long>(totals.rows), static_cast<long long>(totals.preemptions),
      static_cast<long long>(totals.cached_tokens),
      static_cast<long long>(totals.recomputed_tokens), static_cast<long long>(totals.images));
  std::printf("%lld drafts made, %lld checked, %lld accepted\n",
              static_cast<long long>(totals.drafted), static_cast<long long>(totals.verified),
              static_cast<long long>(totals.accepted));
  if (only > 0) return;
  EXPECT_GE(totals.steps, 10000);
  // The traffic must reach what it is there for.
  EXPECT_GT(totals.preemptions, 100);
  EXPECT_GT(totals.cached_tokens, 1000);
  EXPECT_GT(totals.errors, 10);
  EXPECT_GT(totals.cancelled, 10);
  EXPECT_GT(totals.accepted, 5000);
  EXPECT_GT(totals.verified - totals.accepted, 10000);
}

}  // namespace
}  // namespace fathom::sim
