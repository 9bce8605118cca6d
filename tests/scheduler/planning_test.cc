// What a step consists of.

#include <algorithm>

#include "scheduler/scheduler_fixture.h"

namespace fathom::scheduler {
namespace {

TEST(Planning, APromptIsComputedInChunksAndSampledAtItsEnd) {
  SchedulerOptions options = small_options();
  options.resume_budget_bytes = 0;
  Driver d(options);
  const auto request = d.spec(1, some_ids(70), 3);
  d.add(request);
  for (const int64_t rows : {32, 32, 6}) {
    d.plan();
    ASSERT_EQ(d.last_plan.segments.size(), 1u);
    EXPECT_EQ(num_rows(d.last_plan), rows);
    EXPECT_EQ(d.last_plan.segments[0].sample, rows == 6);
    EXPECT_EQ(d.last_plan.segments[0].decoder_start, 70);
    EXPECT_EQ(d.last_plan.segments[0].decoder_floor, 62);
    d.apply();
  }
  d.run();
  EXPECT_EQ((d.tokens[{1, 0}]), d.expected(request));
}

TEST(Planning, DecodesComeFirstAndChunksFillTheStep) {
  SchedulerOptions options = small_options();
  options.resume_budget_bytes = 0;
  Driver d(options);
  d.add(1, some_ids(5, 1), 50);
  d.add(2, some_ids(6, 2), 50);
  d.step();
  d.add(3, some_ids(100, 3), 5);
  d.add(4, some_ids(10, 4), 5);
  d.plan();
  ASSERT_EQ(d.last_plan.segments.size(), 3u);
  EXPECT_EQ(d.last_plan.segments[0].num_rows, 1);
  EXPECT_EQ(d.last_plan.segments[1].num_rows, 1);
  EXPECT_EQ(d.last_plan.segments[2].num_rows, 30);
  d.apply();
}

TEST(Planning, SeveralPromptsShareAStep) {
  Driver d(small_options());
  for (RequestId id = 1; id <= 3; ++id) d.add(id, some_ids(9, static_cast<uint64_t>(id)), 2);
  d.plan();
  EXPECT_EQ(d.last_plan.segments.size(), 3u);
  EXPECT_EQ(num_rows(d.last_plan), 27);
  d.apply();
}

TEST(Planning, ChunksEndWhereStateIsSaved) {
  Driver d(small_options());  // every 16 tokens
  d.add(1, some_ids(41), 2);
  std::vector<int64_t> ends;
  while (d.scheduler.stats().running + d.scheduler.stats().waiting > 0) {
    d.plan();
    for (const SegmentPlan& s : d.last_plan.segments) ends.push_back(s.end());
    EXPECT_EQ(d.last_plan.saves.size(), d.last_plan.segments.size());
    d.apply();
  }
  // The prompt's end, and the request's: its last token is not computed.
  EXPECT_EQ(ends, (std::vector<int64_t>{16, 32, 41, 42}));
}

TEST(Planning, NoRowIsPlannedBeyondTheLastToken) {
  for (const int depth : {1, 2}) {
    Driver d(small_options());
    d.add(1, some_ids(10), 7);
    d.run(depth);
    EXPECT_EQ(d.executor.num_rows(), 10 + 6);
    EXPECT_EQ((d.tokens[{1, 0}].size()), 7u);
    EXPECT_EQ(d.events[1].back().finish, FinishReason::kLength);
  }
}

TEST(Planning, AnEndTokenCostsOneRowInAsynchronousStepsAndNoVisibleToken) {
  SchedulerOptions options = small_options();
  auto executor = executor_options(options);
  executor.eos_every = 6;
  Driver sync(options, executor), async(options, executor);
  auto request = sync.spec(1, some_ids(10), 200);
  request.params.ignore_eos = false;
  sync.add(request);
  async.add(request);
  sync.run(1);
  async.run(2);
  const std::vector<int32_t> expected = sync.expected(request);
  ASSERT_EQ(expected.back(), harness::kFakeEos);
  EXPECT_EQ((sync.tokens[{1, 0}]), expected);
  EXPECT_EQ((async.tokens[{1, 0}]), expected);
  EXPECT_EQ(async.events[1].back().finish, FinishReason::kStop);
  EXPECT_EQ(async.executor.num_rows(), sync.executor.num_rows() + 1);
}

TEST(Planning, StopIdsAndTheEndTokenWaitForMinTokens) {
  Driver d(small_options());
  auto request = d.spec(1, some_ids(10), 50);
  request.params.ignore_eos = false;
  request.forced = {30, harness::kFakeEos, 31, 32, 31};
  request.stop_ids = {31};
  request.params.min_tokens = 4;
  d.add(request);
  d.run();
  EXPECT_EQ((d.tokens[{1, 0}]), request.forced);
  EXPECT_EQ(d.events[1].back().finish, FinishReason::kStop);
}

// The fake executor's clock: every step with a decode in it stays below the target, from the first
// on, and prompts go on all the same.
TEST(Planning, WithACostTableNoStepWithADecodeIsLongerThanTheTarget) {
  SchedulerOptions options = small_options();
  options.num_slots = 12;
  options.step_tokens = 512;
  options.num_blocks = 4000;
  options.max_context = 8000;
  options.resume_budget_bytes = 0;
  for (const double target : {0.004, 0.006, 0.012, 0.030}) {
    options.decode_latency_target_s = target;
    auto executor = executor_options(options);
    executor.seconds_fixed = 0.001;
    executor.seconds_per_row = 0.0001;
    options.costs.chunks = {{1, 0.0011}, {16, 0.0026}, {512, 0.0522}};
    Driver d(options, executor);
    for (RequestId id = 1; id <= 12; ++id) {
      d.add(id, some_ids(200 + 40 * id, static_cast<uint64_t>(id)), 60);
    }
    int num_mixed = 0;
    while (!d.scheduler.idle()) {
      const StepPlan& plan = d.plan();
      int64_t num_decodes = 0;
      for (const SegmentPlan& s : plan.segments) num_decodes += s.num_rows == 1 ? 1 : 0;
      const double seconds = 0.001 + 0.0001 * static_cast<double>(num_rows(plan));
      if (num_decodes > 0 && num_rows(plan) > num_decodes) {
        ++num_mixed;
        EXPECT_LE(seconds, target * 1.001) << num_rows(plan) << " rows";
      }
      d.apply();
    }
    EXPECT_GT(num_mixed, 10) << target;
  }
}

TEST(Planning, ALatencyTargetShrinksTheChunksBesideDecodes) {
  SchedulerOptions options = small_options();
  options.step_tokens = 512;
  options.resume_budget_bytes = 0;
  options.num_blocks = 2000;
  options.max_context = 8000;
  options.decode_latency_target_s = 0.011;
  auto executor = executor_options(options);
  executor.seconds_fixed = 0.001;
  executor.seconds_per_row = 0.0001;
  Driver d(options, executor);
  d.add(1, some_ids(1200, 1), 400);  // alone: nobody waits for a decode
  EXPECT_EQ(num_rows(d.plan()), 512);
  d.apply();
  for (int i = 0; i < 20; ++i) d.step();
  d.add(2, some_ids(3000, 2), 2);
  for (int i = 0; i < 10; ++i) {
    EXPECT_NEAR(static_cast<double>(num_rows(d.plan())), 100, 1) << i;
    d.apply();
  }
}

// Rows of the decoder that a plan asks for (model/batch.h).
int64_t num_decoder_rows(const StepPlan& plan) {
  int64_t rows = 0;
  for (const SegmentPlan& s : plan.segments) {
    const bool is_later = s.start >= s.decoder_start;
    if (is_later || s.end() >= s.decoder_start)
      rows += s.end() - (is_later ? s.start : s.decoder_floor);
  }
  return rows;
}

// Samples of one prompt, then prompts that are in the cache: each has few rows left, and a window
// of them in the decoder.
TEST(Planning, PromptsThatEndTogetherHaveNoMoreDecoderRowsThanAStep) {
  SchedulerOptions options = small_options();
  options.num_slots = 12;
  options.num_blocks = 500;
  Driver d(options);
  SequenceSpec request = d.spec(1, some_ids(50), 5);
  std::vector<SequenceSpec> samples;
  for (int32_t i = 0; i < 12; ++i) {
    samples.push_back(request);
    samples.back().index = i;
    samples.back().seed = static_cast<uint64_t>(i);
  }
  d.scheduler.add(std::move(samples));
  int64_t most = 0;
  const auto run = [&] {
    while (!d.scheduler.idle()) {
      most = std::max(most, num_decoder_rows(d.plan()));
      if (d.in_flight > 0) d.apply();
    }
  };
  run();
  for (RequestId id = 2; id < 14; ++id) d.add(id, some_ids(50), 5);
  run();
  EXPECT_LE(most, options.step_tokens + options.window + options.num_slots);
  EXPECT_GT(most, 2 * options.window) << "several end in a step";
  for (int32_t i = 0; i < 12; ++i) {
    request.seed = static_cast<uint64_t>(i);
    EXPECT_EQ((d.tokens[{1, i}]), d.expected(request)) << i;
    SequenceSpec later = d.spec(2 + i, some_ids(50), 5);
    EXPECT_EQ((d.tokens[{2 + i, 0}]), d.expected(later)) << i;
  }
}

TEST(Planning, PromptLogprobsTakeExactModeAndArriveOnceInOrder) {
  SchedulerOptions options = small_options();
  options.num_blocks = 24;
  Driver d(options);
  auto request = d.spec(1, some_ids(50), 40);
  request.prompt_logprobs = 2;
  d.add(d.spec(2, some_ids(20, 2), 60));
  d.step();
  d.add(request);
  int64_t next = 1;
  for (int i = 0; i < 400 && !d.scheduler.idle(); ++i) {
    d.step();
    for (const auto& e : d.scheduler.take_prompt_logprobs()) {
      EXPECT_EQ(e.request, 1);
      EXPECT_EQ(e.logprob.position, next);
      EXPECT_EQ(e.logprob.token.id, request.prompt[static_cast<size_t>(next)]);
      ++next;
    }
  }
  EXPECT_EQ(next, 50);
  EXPECT_GT(d.scheduler.stats().preemptions, 0);
  request.prefill = PrefillMode::kExact;
  EXPECT_EQ((d.tokens[{1, 0}]), d.expected(request));
}

TEST(Planning, NothingToDoIsAPlanWithoutWorkThatNeedNotBeApplied) {
  Driver d(small_options());
  const StepPlan plan = d.scheduler.plan();
  EXPECT_FALSE(has_work(plan));
  EXPECT_TRUE(d.scheduler.apply({.step = plan.step}).empty());
  d.add(1, some_ids(5), 3);
  d.run();
  EXPECT_EQ((d.tokens[{1, 0}].size()), 3u);
}

}  // namespace
}  // namespace fathom::scheduler
