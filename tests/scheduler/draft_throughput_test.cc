// Drafts beside prompts: what they bring and what they cost while others wait.

#include <cstdio>

#include "scheduler/scheduler_fixture.h"

namespace fathom::scheduler {
namespace {

// About an H200 with eight layers of the release's widths (bench/results): seconds of a step by
// rows, and of making drafts by sequences.
constexpr double kFixed = 0.007, kPerRow = 0.000033, kRound = 0.0014, kPerMaker = 0.000067;

StepCosts costs() {
  StepCosts c;
  for (int64_t rows = 1; rows <= 512; rows *= 2) {
    const CostPoint point{rows, kFixed + kPerRow * static_cast<double>(rows)};
    c.chunks.push_back(point);
    c.decodes.push_back(point);
    c.drafts.push_back({rows, kRound + kPerMaker * static_cast<double>(rows)});
  }
  return c;
}

struct Load {
  int32_t slots, requests;
  int64_t prompt_tokens;
  int32_t answer_tokens;
};

struct Played {
  double seconds = 0;
  int64_t verified = 0;
};

struct Machine {
  SchedulerOptions options;
  harness::FakeExecutorOptions executor;
};

Machine machine(int32_t num_slots, int64_t context, int32_t max_draft, double accept_rate) {
  SchedulerOptions options = small_options();
  options.num_slots = num_slots;
  options.block_tokens = 16;
  options.num_blocks = static_cast<int32_t>(num_slots * context / 16);
  options.step_tokens = 512;
  options.max_context = context;
  options.resume_budget_bytes = 0;
  options.prefix_cache = false;
  options.max_draft = max_draft;
  options.costs = costs();
  harness::FakeExecutorOptions executor = executor_options(options);
  executor.accept_rate = accept_rate;
  executor.seconds_fixed = kFixed;
  executor.seconds_per_row = kPerRow;
  executor.seconds_per_round = kRound;
  executor.seconds_per_maker = kPerMaker;
  return {options, executor};
}

Played play(const Load& load, int32_t max_draft, double accept_rate) {
  const Machine m =
      machine(load.slots, load.prompt_tokens + load.answer_tokens + 64, max_draft, accept_rate);
  Driver driver(m.options, m.executor);
  for (RequestId id = 1; id <= load.requests; ++id) {
    driver.add(id, some_ids(load.prompt_tokens, static_cast<uint64_t>(id)), load.answer_tokens);
  }
  Played sum;
  while (!driver.scheduler.idle()) {
    driver.scheduler.plan(driver.last_plan);
    driver.executor.submit(driver.last_plan);
    const StepResult result = driver.executor.wait();
    sum.seconds += result.seconds;
    for (const SlotDrafts& drafts : result.drafts) sum.verified += drafts.num_verified;
    driver.scheduler.apply(result);
    if (driver.executor.fault() != "") break;
  }
  EXPECT_EQ(driver.executor.fault(), "");
  return sum;
}

// A token that a draft brings while prompts wait is cheap later, when all of them decode; the rows
// that it takes from their prompts are not.
TEST(DraftThroughput, ManyRequestsAtOnceAreNotSlowerThanWithoutDrafts) {
  for (const Load& load : {Load{64, 64, 64, 64},
                           {256, 256, 64, 64},
                           {256, 512, 64, 64},
                           {32, 128, 200, 24},
                           {8, 64, 300, 40}}) {
    for (const double accept_rate : {0.3, 0.6, 0.8}) {
      const Played without = play(load, 0, accept_rate), with = play(load, 5, accept_rate);
      std::printf("%d slots, %d requests, acceptance %.1f: %.3f of %.3f s, %ld drafts\n",
                  load.slots, load.requests, accept_rate, with.seconds / without.seconds,
                  without.seconds, with.verified);
      EXPECT_LE(with.seconds, 1.02 * without.seconds) << load.slots << ' ' << accept_rate;
    }
  }
}

// One answer beside a long prompt: its rows are few, and what they bring is its pace.
TEST(DraftThroughput, AnAnswerBesideALongPromptKeepsItsDrafts) {
  const Machine m = machine(2, 30000, 5, 0.8);
  Driver driver(m.options, m.executor);
  driver.add(1, some_ids(100, 1), 400);
  for (int i = 0; i < 20; ++i) driver.step();
  driver.add(2, some_ids(20000, 2), 2);
  const std::vector<int32_t>& tokens = driver.tokens[{1, 0}];
  const size_t before = tokens.size();
  for (int i = 0; i < 20; ++i) {
    driver.step();
    EXPECT_GE(num_rows(driver.last_plan), 256) << i;  // of the prompt, most
  }
  EXPECT_GE(tokens.size() - before, 40u);
}

}  // namespace
}  // namespace fathom::scheduler
