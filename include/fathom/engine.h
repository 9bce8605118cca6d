// The engine: many requests at once on one model.
//
// Results never depend on who else is running: a request's tokens are a function of its ids,
// parameters and seed (design rules 3-5).  Thread: any thread may call any function.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "fathom/request.h"
#include "fathom/status.h"

namespace fathom {

// Tokens that were guessed ahead (Config::max_draft), in all requests so far.
struct DraftStats {
  static constexpr int32_t kMaxPositions = SamplingParams::kMostDrafts;

  int64_t drafted = 0;   // guesses made
  int64_t verified = 0;  // that the model checked
  int64_t accepted = 0;  // that it would have chosen too
  int64_t rounds = 0;    // steps of one sequence in which at least one guess was checked
  // By place in the guess, the first at [0].
  std::array<int64_t, kMaxPositions> verified_at = {};
  std::array<int64_t, kMaxPositions> accepted_at = {};
  // How far the draft module's confidence is from what is accepted: the mean difference over ten
  // classes of confidence, weighted by how often they occur.
  double calibration_error = 0;

  // Tokens of a sequence in a step with guesses: those accepted and one more.
  double mean_accepted_length() const {
    return rounds == 0 ? 0 : 1 + static_cast<double>(accepted) / static_cast<double>(rounds);
  }
};

struct EngineStats {
  int32_t running = 0;  // sequences with a slot
  int32_t waiting = 0;
  int32_t free_blocks = 0;
  int32_t num_blocks = 0;
  int64_t steps = 0;
  int64_t preemptions = 0;
  int64_t computed_tokens = 0;    // rows run through the model
  int64_t cached_tokens = 0;      // prompt tokens whose pages were found
  int64_t recomputed_tokens = 0;  // of these, rows that were run again to fill windows
  double busy_s = 0;              // time the executor worked
  int64_t sampling_steps = 0;     // steps from which tokens came
  int64_t sampled_tokens = 0;     // and these
  DraftStats drafts = {};
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Queues a request.  One with a constraint that is new to the engine takes the time of a compile
  // first (tens of milliseconds, up to seconds), on the caller's thread.  Errors, each about this
  // request only: kInvalidArgument (empty prompt, ids, ranges, longer than the context, a
  // constraint that cannot be held to), kResourceExhausted (needs more blocks than there are; the
  // queue is full: try later), kDeadlineExceeded (timeout_s), kCancelled (draining).
  virtual Result<RequestId> submit(Request request) = 0;

  // Ends a request, or one of its samples; its last event says kCancelled.  It is out of the batch
  // within a step.  No-op if it is done.
  virtual void cancel(RequestId request, int32_t index = kAllSamples) = 0;
  static constexpr int32_t kAllSamples = -1;

  // Events in the order in which they happened, those of one request without gaps; waits up to
  // `timeout` for the first. Every accepted request gets exactly one event with `finish` for each
  // of its n samples.
  virtual std::vector<TokenEvent> wait(std::chrono::milliseconds timeout) = 0;

  virtual EngineStats stats() const = 0;

  // Refuses new requests from now on; returns when all accepted ones are done.
  virtual void drain() = 0;
};

}  // namespace fathom
