// A scheduler over the fake executor, driven step by step.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "harness/fake_executor.h"
#include "harness/fake_model.h"
#include "scheduler/scheduler.h"

namespace fathom::scheduler {

inline SchedulerOptions small_options() {
  SchedulerOptions options;
  options.num_slots = 4;
  options.num_blocks = 64;
  options.block_tokens = 4;
  options.step_tokens = 32;
  options.window = 8;
  options.max_context = 1000;
  options.eos_token = harness::kFakeEos;
  options.resume_every = 16;
  options.resume_budget_bytes = 100000;
  return options;
}

inline harness::FakeExecutorOptions executor_options(const SchedulerOptions& options) {
  harness::FakeExecutorOptions executor;
  executor.num_slots = options.num_slots;
  executor.num_blocks = options.num_blocks;
  executor.block_tokens = options.block_tokens;
  executor.step_tokens = std::max(options.step_tokens, options.num_slots);
  executor.window = options.window;
  return executor;
}

// `n` ids that depend on `salt`.
inline std::vector<int32_t> some_ids(int64_t n, uint64_t salt = 1) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) {
    ids.push_back(static_cast<int32_t>(2 + harness::mix(salt, static_cast<uint64_t>(i)) %
                                               (harness::kFakeVocab - 2)));
  }
  return ids;
}

class Driver {
 public:
  explicit Driver(const SchedulerOptions& options) : Driver(options, executor_options(options)) {}
  Driver(const SchedulerOptions& options, const harness::FakeExecutorOptions& executor_options)
      : scheduler(options),
        executor(executor_options),
        eos_every_(executor_options.eos_every),
        window_(options.window) {}

  // A request that goes on for max_tokens, whatever the model says.
  SequenceSpec spec(RequestId request, std::vector<int32_t> prompt, int32_t max_tokens) const {
    SequenceSpec s;
    s.request = request;
    s.prompt = std::move(prompt);
    s.max_tokens = max_tokens;
    s.params.ignore_eos = true;
    s.seed = static_cast<uint64_t>(request);
    return s;
  }
  void add(SequenceSpec s) { scheduler.add({std::move(s)}); }
  void add(RequestId request, std::vector<int32_t> prompt, int32_t max_tokens) {
    add(spec(request, std::move(prompt), max_tokens));
  }

  const StepPlan& plan() {
    last_plan = scheduler.plan();
    scheduler.check_integrity();
    if (has_work(last_plan)) {
      executor.submit(last_plan);
      ++in_flight;
    }
    return last_plan;
  }
  std::vector<TokenEvent> apply() {
    --in_flight;
    std::vector<TokenEvent> new_events = scheduler.apply(executor.wait());
    scheduler.check_integrity();
    EXPECT_EQ(executor.fault(), "");
    for (const TokenEvent& e : new_events) {
      events[e.request].push_back(e);
      if (e.token >= 0) tokens[{e.request, e.index}].push_back(e.token);
      if (e.finish != FinishReason::kNone) order_of_ends.push_back(e.request);
    }
    return new_events;
  }
  // One synchronous step.
  std::vector<TokenEvent> step() {
    plan();
    return in_flight > 0 ? apply() : std::vector<TokenEvent>();
  }
  void run(int depth = 1) {
    for (int i = 0; i < 10000; ++i) {
      while (in_flight < depth) {
        plan();
        if (!has_work(last_plan)) break;
      }
      if (in_flight == 0) break;
      apply();
    }
    EXPECT_TRUE(scheduler.idle());
  }

  // What the model says of a request alone.
  std::vector<int32_t> expected(const SequenceSpec& s) const {
    std::vector<int32_t> all = s.prompt, out;
    while (std::ssize(out) < s.max_tokens) {
      out.push_back(harness::fake_next(all, std::ssize(s.prompt), s.prefill == PrefillMode::kExact,
                                       window_, s.seed, eos_every_));
      all.push_back(out.back());
      if (out.back() == harness::kFakeEos && !s.params.ignore_eos) break;
    }
    return out;
  }

  Scheduler scheduler;
  harness::FakeExecutor executor;
  StepPlan last_plan;
  int in_flight = 0;
  std::map<RequestId, std::vector<TokenEvent>> events;
  std::map<std::pair<RequestId, int32_t>, std::vector<int32_t>> tokens;
  std::vector<RequestId> order_of_ends;

 private:
  int eos_every_;
  int64_t window_;
};

inline int64_t num_rows(const StepPlan& plan) {
  int64_t rows = 0;
  for (const SegmentPlan& s : plan.segments) rows += s.num_rows;
  return rows;
}

}  // namespace fathom::scheduler
