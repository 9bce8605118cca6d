// Load on an engine, and what each request saw of it.
//
// Closed loop: every user has one request at a time and submits the next when it has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fathom/engine.h"
#include "percentiles.h"

namespace fathom::app {

// Seconds are those of a monotonic clock.
struct RequestTrace {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  double submit_s = 0;
  double first_s = 0;  // of the first token
  double end_s = 0;
  std::vector<double> gaps_s;  // between one token and the next
};

class LoadSource {
 public:
  virtual ~LoadSource() = default;
  // The next request of a user (n = 1); nullopt: it has asked all it wanted.
  virtual Result<std::optional<Request>> next(int user) = 0;
  // How the user's request ended.
  virtual void done(int user, const RequestTrace& trace, std::span<const int32_t> output);
};

struct LoadResult {
  std::vector<RequestTrace> traces;  // in the order in which they ended
  double seconds = 0;
  EngineStats stats;  // counters: what this load added

  int64_t total(int64_t RequestTrace::*count) const;
  Percentiles ttft_s() const;
  Percentiles gaps_s() const;
};

// Runs until every user is done.  Errors: of the source; of a request, which ends the load;
// kCancelled after ctrl-C.  Nothing else may use the engine meanwhile.
Result<LoadResult> run_load(fathom::Engine& engine, int num_users, LoadSource& source);

}  // namespace fathom::app
