// Prefix hits and parallel samples.

#include <algorithm>

#include "scheduler/scheduler_fixture.h"

namespace fathom::scheduler {
namespace {

std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Rows that a request took, run alone after what ran before.
int64_t rows_of(Driver& d, const SequenceSpec& request) {
  const int64_t before = d.executor.num_rows();
  d.add(request);
  d.run();
  EXPECT_EQ((d.tokens[{request.request, 0}]), d.expected(request));
  return d.executor.num_rows() - before;
}

TEST(PrefixCache, TheNextTurnStartsWhereTheLastOneEnded) {
  for (const PrefillMode mode : {PrefillMode::kReplay, PrefillMode::kExact}) {
    Driver d(small_options());
    auto first = d.spec(1, some_ids(37), 6);
    first.prefill = mode;
    EXPECT_EQ(rows_of(d, first), 37 + 5);
    // 42 tokens are computed; the 43rd and the user's 5 are new.
    auto second = d.spec(2, joined(joined(first.prompt, d.tokens[{1, 0}]), some_ids(5, 9)), 3);
    second.prefill = mode;
    EXPECT_EQ(rows_of(d, second), 48 - 42 + 2);
    EXPECT_EQ(d.events[2].front().cached_tokens, 42);
    EXPECT_EQ(d.events[2].back().cached_tokens, 0);
    EXPECT_EQ(d.scheduler.stats().recomputed_tokens, 0);
  }
}

TEST(PrefixCache, ARequestThatEndedByItsEndTokenIsContinuedToo) {
  for (const int depth : {1, 2}) {
    SchedulerOptions options = small_options();
    Driver d(options);
    auto first = d.spec(1, some_ids(37), 100);
    first.params.ignore_eos = false;
    first.forced = {10, 11, 12, harness::kFakeEos};
    d.add(first);
    d.run(depth);
    const auto second =
        d.spec(2, joined(joined(first.prompt, d.tokens[{1, 0}]), some_ids(20, 9)), 3);
    // In asynchronous steps the end token's row was computed before it was known.
    EXPECT_EQ(rows_of(d, second), 61 - (depth == 1 ? 40 : 41) + 2);
  }
}

TEST(PrefixCache, AHitIsAMissForEveryCutOfTheSamePrompt) {
  SchedulerOptions options = small_options();
  const std::vector<int32_t> text = some_ids(120);
  for (const PrefillMode mode : {PrefillMode::kReplay, PrefillMode::kExact}) {
    for (const int64_t budget : {0, 100000}) {
      options.resume_budget_bytes = budget;
      for (int64_t cut = 1; cut < 60; ++cut) {
        Driver d(options);
        auto first = d.spec(1, {text.begin(), text.begin() + cut}, 4);
        first.prefill = mode;
        rows_of(d, first);
        auto second = d.spec(2, {text.begin(), text.begin() + 61}, 4);
        second.prefill = mode;
        rows_of(d, second);
      }
    }
  }
}

TEST(PrefixCache, APrefixThatManyShareIsComputedTwiceThenNoMore) {
  SchedulerOptions options = small_options();
  options.resume_every = 1000;
  for (const PrefillMode mode : {PrefillMode::kReplay, PrefillMode::kExact}) {
    Driver d(options);
    const auto request = [&](RequestId id) {
      auto spec = d.spec(id, joined(some_ids(40), some_ids(20, static_cast<uint64_t>(id) + 9)), 3);
      spec.prefill = mode;
      return spec;
    };
    EXPECT_EQ(rows_of(d, request(1)), 60 + 2);
    // Its pages are there and no STATE: it runs all of them, and leaves an image where it parts.
    EXPECT_EQ(rows_of(d, request(2)), 60 + 2);
    for (RequestId id = 3; id < 6; ++id) EXPECT_EQ(rows_of(d, request(id)), 20 + 2) << id;
    EXPECT_EQ(d.events[3].front().cached_tokens, 40);
    EXPECT_EQ(d.scheduler.stats().recomputed_tokens, 40);
  }
}

TEST(PrefixCache, AllOfAPromptCachedStillComputesItsLastToken) {
  Driver d(small_options());
  const auto first = d.spec(1, some_ids(48), 4);
  rows_of(d, first);
  const auto again = d.spec(2, some_ids(48), 4);
  // From the image at 32 on: the one at 48 has no row left to sample from.
  EXPECT_EQ(rows_of(d, again), 16 + 3);
  EXPECT_EQ(d.events[2].front().cached_tokens, 48);
  EXPECT_EQ(d.scheduler.stats().recomputed_tokens, 16);
}

TEST(PrefixCache, PagesWithoutStateAreSharedAndTheirRowsRunAgain) {
  SchedulerOptions options = small_options();
  options.resume_budget_bytes = 0;
  Driver d(options);
  rows_of(d, d.spec(1, some_ids(48), 4));
  EXPECT_EQ(rows_of(d, d.spec(2, joined(some_ids(48), some_ids(4, 3)), 4)), 52 + 3);
  EXPECT_EQ(d.events[2].front().cached_tokens, 48);
  EXPECT_EQ(d.scheduler.stats().recomputed_tokens, 48);
}

TEST(PrefixCache, ExactModeDoesNotStartFromImagesWithoutDecoderWindows) {
  Driver d(small_options());
  rows_of(d, d.spec(1, some_ids(48), 4));
  auto exact = d.spec(2, joined(some_ids(48), some_ids(4, 3)), 4);
  exact.prefill = PrefillMode::kExact;
  EXPECT_EQ(rows_of(d, exact), 52 + 3);
}

TEST(PrefixCache, ReplayRunsOneWindowWhereNoImageIsAsNear) {
  SchedulerOptions options = small_options();
  options.replay_windows = true;
  options.resume_every = 1000;
  Driver d(options);
  rows_of(d, d.spec(1, some_ids(48), 4));
  // 40 tokens are common, the images are at 48 and 51.
  const auto second = d.spec(2, joined(some_ids(40), {50, 51}), 4);
  EXPECT_EQ(rows_of(d, second), 8 + 2 + 3);
  EXPECT_EQ(d.events[2].front().cached_tokens, 40);
  // A hit that is no longer than a window is no use.
  const auto third = d.spec(3, joined(some_ids(8), {52, 53}), 4);
  EXPECT_EQ(rows_of(d, third), 10 + 3);
  // Exact mode does not do it.
  auto exact = d.spec(4, second.prompt, 4);
  exact.prefill = PrefillMode::kExact;
  EXPECT_EQ(rows_of(d, exact), 42 + 3);
}

TEST(PrefixCache, OffMeansNothingIsShared) {
  SchedulerOptions options = small_options();
  options.prefix_cache = false;
  Driver d(options);
  rows_of(d, d.spec(1, some_ids(48), 4));
  EXPECT_EQ(rows_of(d, d.spec(2, some_ids(48), 4)), 48 + 3);
  EXPECT_EQ(d.events[2].front().cached_tokens, 0);
  EXPECT_EQ(d.executor.num_images(), 0);
}

TEST(PrefixCache, AnotherNamespaceFindsNothing) {
  SchedulerOptions options = small_options();
  Driver a(options);
  options.namespace_key.digest[0] = 1;
  Driver b(options);
  // The same traffic: keys decide, so both see their own hits only.
  for (Driver* d : {&a, &b}) {
    rows_of(*d, d->spec(1, some_ids(20), 4));
    rows_of(*d, d->spec(2, some_ids(20), 4));
    EXPECT_EQ(d->events[2].front().cached_tokens, 20);
  }
}

TEST(PrefixCache, ImagesStayWithinTheirBudget) {
  SchedulerOptions options = small_options();
  options.resume_budget_bytes = 1000;  // half for resume points, of 100 to 103 bytes
  Driver d(options);
  for (RequestId id = 1; id <= 20; ++id) {
    rows_of(d, d.spec(id, some_ids(50, static_cast<uint64_t>(id)), 4));
    EXPECT_LE(d.scheduler.stats().resume_bytes, 500);
  }
  EXPECT_EQ(d.scheduler.stats().resume_points, 4);
}

std::vector<SequenceSpec> samples(const Driver& d, int32_t n, int64_t num_prompt,
                                  int32_t max_tokens) {
  std::vector<SequenceSpec> specs(static_cast<size_t>(n),
                                  d.spec(1, some_ids(num_prompt), max_tokens));
  for (int32_t i = 0; i < n; ++i) {
    specs[static_cast<size_t>(i)].index = i;
    specs[static_cast<size_t>(i)].seed = static_cast<uint64_t>(100 + i);
  }
  return specs;
}

TEST(Samples, ComputeTheirPromptOnce) {
  for (const PrefillMode mode : {PrefillMode::kReplay, PrefillMode::kExact}) {
    for (const int depth : {1, 2}) {
      for (const int64_t num_prompt : {1, 2, 5, 33, 40, 41}) {
        Driver d(small_options());
        auto specs = samples(d, 4, num_prompt, 6);
        for (auto& s : specs) s.prefill = mode;
        d.scheduler.add(specs);
        d.run(depth);
        // Each sample computes the prompt's last row and its own.
        EXPECT_EQ(d.executor.num_rows(), num_prompt - 1 + 4 * 6) << num_prompt;
        for (const auto& s : specs) EXPECT_EQ((d.tokens[{1, s.index}]), d.expected(s));
      }
    }
  }
}

TEST(Samples, MoreThanThereAreSlotsStillForkFromThosePresent) {
  SchedulerOptions options = small_options();
  options.num_slots = 2;
  options.resume_budget_bytes = 0;
  Driver d(options);
  const auto specs = samples(d, 6, 41, 9);
  d.scheduler.add(specs);
  d.run(2);
  for (const auto& s : specs) EXPECT_EQ((d.tokens[{1, s.index}]), d.expected(s));
  EXPECT_EQ(d.executor.num_rows(), 40 + 6 * 9);
  EXPECT_EQ(d.executor.num_images(), 0);
}

TEST(Samples, AreOnTheirOwnWhenTheFirstOneFails) {
  SchedulerOptions options = small_options();
  auto executor = executor_options(options);
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    executor.step_error_rate = 0.2;
    executor.seed = seed;
    Driver d(options, executor);
    const auto specs = samples(d, 4, 41, 3);
    d.scheduler.add(specs);
    d.run(2);
    EXPECT_EQ(d.order_of_ends.size(), 4u);
  }
}

TEST(Samples, AreCancelledTogether) {
  Driver d(small_options());
  d.scheduler.add(samples(d, 8, 41, 30));
  for (int i = 0; i < 6; ++i) d.step();
  EXPECT_EQ(d.scheduler.stats().running, 4);
  EXPECT_TRUE(d.scheduler.cancel(1));
  d.run();
  EXPECT_TRUE(d.order_of_ends.empty());
  EXPECT_EQ(d.scheduler.stats().free_blocks, 64);
}

}  // namespace
}  // namespace fathom::scheduler
