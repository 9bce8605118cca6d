// Who is served when, who has to leave, and how it comes back.

#include <algorithm>

#include "scheduler/scheduler_fixture.h"

namespace fathom::scheduler {
namespace {

TEST(Admission, LowerPriorityNumbersComeFirstThenEarlierArrivals) {
  SchedulerOptions options = small_options();
  options.num_slots = 1;
  Driver d(options);
  const int32_t priorities[] = {1, 0, 1, 0, 2, 0};
  for (RequestId id = 1; id <= 6; ++id) {
    auto request = d.spec(id, some_ids(6, static_cast<uint64_t>(id)), 3);
    request.priority = priorities[id - 1];
    d.add(request);
  }
  d.run();
  EXPECT_EQ(d.order_of_ends, (std::vector<RequestId>{2, 4, 6, 1, 3, 5}));
}

TEST(Admission, AWaitingRequestIsServedHoweverManyBetterOnesArrive) {
  SchedulerOptions options = small_options();
  options.num_slots = 1;
  options.age_boost_steps = 20;
  Driver d(options);
  auto request = d.spec(1, some_ids(6), 3);
  request.priority = 3;
  d.add(d.spec(2, some_ids(6), 3));
  d.add(request);
  RequestId next = 3;
  int steps = 0;
  for (; d.events[1].empty() && steps < 1000; ++steps) {
    if (d.scheduler.stats().waiting < 3) d.add(next++, some_ids(6), 3);
    d.step();
  }
  // Three classes to rise, and what ran then to finish.
  EXPECT_LT(steps, 3 * 20 + 15);
  EXPECT_GT(steps, 2 * 20);
}

// While prompts wait drafts leave half of a step to them; not to one that cannot start.
TEST(Admission, APromptWithoutBlocksTakesNoRowsFromDrafts) {
  SchedulerOptions options = small_options();
  options.step_tokens = 8;
  options.max_draft = 5;
  options.draft_verify = DraftVerify::kFixed;
  Driver d(options);
  d.add(1, some_ids(8, 1), 60);
  d.step();
  d.add(2, some_ids(250, 2), 2);  // all 64 blocks but one
  for (int i = 0; i < 5; ++i) d.step();
  EXPECT_EQ(d.scheduler.stats().waiting, 1);
  EXPECT_EQ(d.last_plan.draft_capacity, 5);
  d.run();
  d.add(3, some_ids(8, 3), 60);
  d.step();
  d.add(4, some_ids(100, 4), 2);
  d.step();
  EXPECT_EQ(d.scheduler.stats().waiting, 0);
  EXPECT_EQ(d.last_plan.draft_capacity, 3);
}

TEST(Admission, APromptWaitsUntilItsBlocksAndOneMoreAreFree) {
  SchedulerOptions options = small_options();
  options.num_blocks = 10;
  options.prefix_cache = false;
  Driver d(options);
  d.add(1, some_ids(17, 1), 4);  // 5 blocks
  d.add(2, some_ids(17, 2), 4);  // 5, and one to grow
  d.step();
  EXPECT_EQ(d.scheduler.stats().running, 2);  // neither will ever need a sixth
  d.run();
  d.add(3, some_ids(17, 3), 8);
  d.add(4, some_ids(17, 4), 8);
  d.step();
  EXPECT_EQ(d.scheduler.stats().running, 1);
  EXPECT_EQ(d.scheduler.stats().waiting, 1);
  d.run();
  EXPECT_EQ(d.order_of_ends.size(), 4u);
}

TEST(Admission, NobodyOvertakesTheFirstInTheQueue) {
  SchedulerOptions options = small_options();
  options.num_blocks = 20;
  Driver d(options);
  d.add(1, some_ids(40, 1), 10);
  d.step();
  d.add(2, some_ids(60, 2), 2);  // does not fit beside 1
  d.add(3, some_ids(4, 3), 12);  // would
  d.run();
  EXPECT_EQ(d.order_of_ends, (std::vector<RequestId>{1, 2, 3}));
}

// Three sequences outgrow the pool; the last one of the lowest class has to leave.
TEST(Preemption, TakesTheYoungestOfTheLowestClass) {
  SchedulerOptions options = small_options();
  options.num_blocks = 24;
  for (const int64_t budget : {0, 100000}) {
    for (const int depth : {1, 2}) {
      options.resume_budget_bytes = budget;
      Driver d(options);
      std::vector<SequenceSpec> requests;
      const int32_t priorities[] = {1, 1, 0};
      for (RequestId id = 1; id <= 3; ++id) {
        requests.push_back(d.spec(id, some_ids(16, static_cast<uint64_t>(id)), 40));
        requests.back().priority = priorities[id - 1];
        d.add(requests.back());
      }
      d.run(depth);
      EXPECT_GT(d.scheduler.stats().preemptions, 0);
      EXPECT_EQ(d.order_of_ends, (std::vector<RequestId>{3, 1, 2}));
      for (const auto& r : requests) EXPECT_EQ((d.tokens[{r.request, 0}]), d.expected(r));
    }
  }
}

TEST(Preemption, ResumesFromTheSavedStateWithoutComputingAgain) {
  SchedulerOptions options = small_options();
  options.num_blocks = 16;
  // The preempted sequence's pages must survive, so the other one ends before it needs them.
  Driver d(options);
  d.add(1, some_ids(30, 1), 6);
  d.add(2, some_ids(26, 2), 8);
  d.run();
  ASSERT_EQ(d.scheduler.stats().preemptions, 1);
  EXPECT_EQ(d.scheduler.stats().recomputed_tokens, 0);
  EXPECT_EQ((d.tokens[{2, 0}]), d.expected(d.spec(2, some_ids(26, 2), 8)));
}

TEST(Preemption, WithoutAnImageItComputesAllAgainAndGetsTheSameTokens) {
  SchedulerOptions options = small_options();
  options.num_blocks = 16;
  options.resume_budget_bytes = 0;
  Driver d(options);
  d.add(1, some_ids(30, 1), 6);
  d.add(2, some_ids(26, 2), 8);
  d.run();
  ASSERT_EQ(d.scheduler.stats().preemptions, 1);
  EXPECT_GT(d.scheduler.stats().recomputed_tokens, 25);
  EXPECT_EQ((d.tokens[{2, 0}]), d.expected(d.spec(2, some_ids(26, 2), 8)));
}

TEST(Preemption, WorksWithoutAPrefixCacheToo) {
  SchedulerOptions options = small_options();
  options.num_blocks = 16;
  options.prefix_cache = false;
  Driver d(options);
  d.add(1, some_ids(30, 1), 6);
  d.add(2, some_ids(26, 2), 8);
  d.run();
  ASSERT_EQ(d.scheduler.stats().preemptions, 1);
  EXPECT_EQ(d.scheduler.stats().recomputed_tokens, 0);
  EXPECT_EQ(d.scheduler.stats().cached_tokens, 0);
  EXPECT_EQ((d.tokens[{2, 0}]), d.expected(d.spec(2, some_ids(26, 2), 8)));
}

TEST(Cancel, FreesBlocksAndSlotOnceNoStepInFlightNamesThem) {
  Driver d(small_options());
  d.add(1, some_ids(20), 50);
  d.step();
  d.step();
  d.plan();
  EXPECT_TRUE(d.scheduler.cancel(1));
  d.scheduler.check_integrity();
  EXPECT_LT(d.scheduler.stats().free_blocks, 64);  // the step in flight has them
  EXPECT_TRUE(d.apply().empty());
  EXPECT_EQ(d.scheduler.stats().free_blocks, 64);
  EXPECT_EQ(d.scheduler.stats().free_slots, 4);
  EXPECT_FALSE(d.scheduler.cancel(1));
  EXPECT_TRUE(d.scheduler.idle());
}

// Steps in flight may have computed rows of tokens that nobody will ever know.
TEST(Cancel, AtAnyStepLeavesACacheThatIsRight) {
  for (const int depth : {1, 2}) {
    for (int cancel_at = 1; cancel_at < 40; ++cancel_at) {
      Driver d(small_options());
      d.add(1, some_ids(21), 60);
      for (int i = 0; i < cancel_at; ++i) {
        while (d.in_flight < depth) d.plan();
        d.apply();
      }
      while (d.in_flight < depth) d.plan();
      EXPECT_TRUE(d.scheduler.cancel(1));
      d.run(depth);
      auto next = d.spec(2, some_ids(21), 4);
      next.prompt.insert(next.prompt.end(), d.tokens[{1, 0}].begin(), d.tokens[{1, 0}].end());
      next.prompt.push_back(40);
      d.add(next);
      d.run(depth);
      EXPECT_EQ((d.tokens[{2, 0}]), d.expected(next));
    }
  }
}

TEST(Cancel, AStormOverALongQueueLeavesNothingBehind) {
  Driver d(small_options());
  constexpr RequestId kRequests = 10000;
  for (RequestId id = 1; id <= kRequests; ++id) {
    d.add(id, some_ids(8, static_cast<uint64_t>(id % 50)), 4);
  }
  for (int i = 0; i < 5; ++i) d.step();
  for (RequestId id = 1; id <= kRequests; ++id) {
    if (id % 100 != 0) d.scheduler.cancel(id);
  }
  d.scheduler.check_integrity();
  d.run(2);
  for (RequestId id = 100; id <= kRequests; id += 100) {
    EXPECT_EQ((d.tokens[{id, 0}].size()), 4u) << id;
  }
  EXPECT_EQ(d.scheduler.stats().free_blocks, 64);
}

TEST(Faults, AFailedStepFailsItsSequencesAndNobodyElse) {
  SchedulerOptions options = small_options();
  auto executor = executor_options(options);
  executor.step_error_rate = 0.1;
  executor.seed = 5;
  Driver d(options, executor);
  std::vector<SequenceSpec> requests;
  for (RequestId id = 1; id <= 40; ++id) {
    requests.push_back(d.spec(id, some_ids(20, static_cast<uint64_t>(id)), 6));
    d.add(requests.back());
  }
  d.run(2);
  int failed = 0;
  for (const auto& r : requests) {
    const TokenEvent& last = d.events[r.request].back();
    ASSERT_NE(last.finish, FinishReason::kNone);
    if (last.finish == FinishReason::kError) {
      ++failed;
      EXPECT_EQ(last.error.code(), StatusCode::kInternal);
    } else {
      EXPECT_EQ((d.tokens[{r.request, 0}]), d.expected(r));
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_LT(failed, 40);
  EXPECT_EQ(d.scheduler.stats().free_blocks, options.num_blocks);
}

TEST(Faults, ABadRowFailsOnlyItsSequence) {
  SchedulerOptions options = small_options();
  auto executor = executor_options(options);
  executor.token_error_rate = 0.03;
  Driver d(options, executor);
  for (RequestId id = 1; id <= 40; ++id) d.add(id, some_ids(10, static_cast<uint64_t>(id)), 6);
  d.run(2);
  const auto failed = std::count_if(d.events.begin(), d.events.end(), [](const auto& e) {
    return e.second.back().finish == FinishReason::kError;
  });
  EXPECT_EQ(failed, d.executor.num_errors());
  EXPECT_GT(failed, 0);
  EXPECT_EQ(d.order_of_ends.size(), 40u);
}

}  // namespace
}  // namespace fathom::scheduler
