// Decides what every step computes.  One rule: a sequence has known and computed tokens, a step
// computes some of the difference (design rule 1); prompt chunks, decode, prefix hits, preemption
// and replay are that rule with numbers.
//
// plan() may be called again before apply() of the step before (asynchronous stepping, at most two
// in flight): it then counts on one new token for every sampling segment and names it
// kPendingToken.  A sequence that turns out to have ended computes one wasted row, which nobody
// sees.  Blocks and slots are given to others only after the last step in flight that names them.
//
// With drafts (max_draft) a decoding segment may bring more tokens than one.  Until its result is
// here the sequence counts with the least that can come of it, and holds blocks for the most.
//
// One order rules everything: a sequence's class is its priority less one for every
// age_boost_steps since it arrived; lower classes come first, and in a class the earlier arrival.
// It decides who is admitted, whose prompt is computed first and, from its end, who is preempted.
//
// No threads, no clock, no device: time comes in as arguments, so that a simulator can run it.
// Thread: engine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/block_key.h"
#include "core/cost_table.h"
#include "core/step_plan.h"
#include "fathom/config.h"
#include "fathom/engine.h"
#include "fathom/request.h"

namespace fathom::scheduler {

struct SchedulerOptions {
  int32_t num_slots = 16;  // sequences with a STATE slot
  int32_t num_blocks = 0;  // blocks of PAGES
  int32_t block_tokens = 128;
  int32_t step_tokens = 512;  // rows a step; num_slots if that is more, so that decodes never wait
  int64_t window = 128;       // W
  int64_t max_context = 0;    // positions; 0: any
  int32_t eos_token = 1;
  int64_t resume_every = 2048;  // tokens between resume points in a prompt
  // Host memory for STATE images: half for resume points, half for preempted sequences; 0: none.
  int64_t resume_budget_bytes = 0;
  bool prefix_cache = true;
  // Of a hit of H tokens the windows are filled by running [H - W, H) from nothing where no resume
  // point is as near: fewer rows, other bits (docs/spec/model.md 4.3). Not in exact mode.
  bool replay_windows = false;
  BlockKey namespace_key;
  PrefillMode prefill = PrefillMode::kReplay;
  // 0: none.  Else chunks shrink so that steps with decodes stay below, as far as the cost table
  // knows; without one it is learned from the steps that run.
  double decode_latency_target_s = 0;
  // What was measured; what is empty is learned from the steps that run.
  StepCosts costs;
  int32_t max_draft = 0;  // drafts of a sequence in a step, at most kMaxDrafts; 0: none are made
  DraftVerify draft_verify = DraftVerify::kConfidence;
  int64_t age_boost_steps = 200;  // > 0
};

// What the engine hands over: checked before (ids, ranges, prompt.size() + max_tokens - 1 rows fit
// into all blocks and into max_context), never wrong here.
struct SequenceSpec {
  RequestId request = 0;
  int32_t index = 0;  // of n parallel samples
  std::vector<int32_t> prompt = {};
  SamplingParams params = {};
  uint64_t seed = 0;
  PrefillMode prefill = PrefillMode::kReplay;
  int32_t max_tokens = 1;  // > 0
  int32_t priority = 0;    // lower is served first
  std::vector<int32_t> stop_ids = {};
  GrammarId grammar = 0;             // see SlotStart
  std::vector<int32_t> forced = {};  // teacher tokens: output i is forced[i]
  // >= 0: forwards log-probabilities of the prompt (of sample 0), with so many alternatives; takes
  // exact mode by itself.
  int32_t prompt_logprobs = -1;
  std::vector<MediaSegment> media = {};
  std::string cache_salt = {};  // sequences share cached blocks with those of the same salt only
};

struct PromptLogprobEvent {
  RequestId request;
  PromptLogprob logprob;
};

struct SchedulerStats {
  int32_t running = 0, waiting = 0, free_blocks = 0, free_slots = 0;
  int64_t preemptions = 0;
  int64_t cached_tokens = 0;      // prompt tokens whose PAGES were found
  int64_t recomputed_tokens = 0;  // rows computed again: found without STATE, or preempted
  int64_t computed_tokens = 0;    // rows planned; of drafts, those that ran
  int64_t sampling_steps = 0;     // steps whose results had tokens
  int64_t sampled_tokens = 0;
  DraftStats drafts;
  int64_t resume_points = 0, resume_bytes = 0;  // kept now
};

// A plan with nothing to carry out is not counted as in flight: it may be executed or not, and its
// result need not be applied.
bool has_work(const StepPlan& plan);

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);
  ~Scheduler();

  // Queues; never fails.  All n samples of a request are one call, with one prompt: the first
  // computes it, the others fork from it.
  void add(std::vector<SequenceSpec> samples);
  // Ends a request's sequences, or the one with this index; their blocks and slots are free for the
  // next plan (blocks of a step in flight: after it). No event tells of it.  No-op if it is gone.
  // Returns whether it was there.
  bool cancel(RequestId request, int32_t index = kAllSamples);
  static constexpr int32_t kAllSamples = -1;

  // The next step, in place of what `plan` held; without work if nothing can be computed now.  At
  // most two are in flight.  Steps of decodes allocate nothing once `plan` has grown.
  void plan(StepPlan& plan);
  StepPlan plan();
  // Takes the result of the oldest step in flight; appends what clients see, in order.  Tokens of
  // sequences that ended in the meantime are dropped.
  void apply(const StepResult& result, std::vector<TokenEvent>& events);
  std::vector<TokenEvent> apply(const StepResult& result);
  // Prompt log-probabilities that came with the results since the last call, by position.
  std::vector<PromptLogprobEvent> take_prompt_logprobs();
  // Requests whose first step was planned since the last call.
  std::vector<RequestId> take_started();

  // Nothing is queued, running, in flight or waiting to be saved.
  bool idle() const;
  SchedulerStats stats() const;
  // Aborts if blocks, slots, references or positions disagree.
  void check_integrity() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fathom::scheduler
