// Steady decoding takes no memory, and a step that gets none fails alone.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/model/model_engine.h"
#include "harness/random_values.h"

namespace {

// Of all threads but those that say that they are clients.
std::atomic<int64_t> num_allocations{0};
// > 0: so many allocations of this thread succeed, then one fails.
thread_local int64_t fail_after = 0;
thread_local bool is_client = false;

void* count_and_allocate(size_t size) {
  if (!is_client) num_allocations.fetch_add(1, std::memory_order_relaxed);
  if (fail_after > 0 && --fail_after == 0) return nullptr;
  return std::malloc(size == 0 ? 1 : size);
}

}  // namespace

// Not inlined: the compiler would take malloc and delete, seen without the wrappers, for a
// mismatch.
__attribute__((noinline)) void* operator new(size_t size) {
  if (void* memory = count_and_allocate(size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return count_and_allocate(size);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace fathom::engine {
namespace {

std::vector<int32_t> some_ids(int64_t n, uint64_t seed, int32_t vocab) {
  harness::Random random(seed);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(3 + random.below(vocab - 3)));
  return ids;
}

// Counted on the engine's thread, rank-0 and the pool; what a client gets is its own.
TEST(EngineMemory, AThousandStepsOfDecodingAllocateNothing) {
  is_client = true;
  constexpr int32_t kTokens = 420, kWarm = 60, kSequences = 4, kRounds = 4;
  test::TestModel model("t1", {.isa = best_isa(), .num_threads = 2, .block_tokens = 16});
  for (const bool asynchronous : {true, false}) {
    const auto engine = make_engine({.num_slots = kSequences,
                                     .num_blocks = kSequences * 40,
                                     .asynchronous = asynchronous,
                                     .resume_every = 4096},
                                    model);
    int64_t num_steps = 0, num_found = 0;
    for (int round = 0; round < kRounds; ++round) {
      for (int32_t i = 0; i < kSequences; ++i) {
        Request r;
        r.prompt =
            some_ids(20 + i, static_cast<uint64_t>(10 * round + i), model.config().vocab_size);
        r.params.max_tokens = kTokens;
        r.params.ignore_eos = true;
        r.params.seed = 5;
        r.params.temperature = i % 2 == 0 ? 0.0f : 1.0f;
        if (i == 1) r.params.top_p = 0.9f;
        if (i == 3) r.params.repetition_penalty = 1.1f;
        const Result<RequestId> id = engine->submit(r);
        ASSERT_TRUE(id.has_value()) << id.error().to_string();
      }
      int64_t tokens = 0, before = -1, after = -1;
      EngineStats at_begin, at_end;
      while (tokens < kSequences * kTokens) {
        const auto events = engine->wait(std::chrono::seconds(20));
        ASSERT_FALSE(events.empty());
        tokens += std::ssize(events);
        if (before < 0 && tokens >= kSequences * kWarm) {
          before = num_allocations;
          at_begin = engine->stats();
        }
        if (after < 0 && tokens >= kSequences * (kTokens - 40)) {
          at_end = engine->stats();
          after = num_allocations;
        }
      }
      num_found += after - before;
      num_steps += at_end.steps - at_begin.steps;
    }
    EXPECT_EQ(num_found, 0) << (asynchronous ? "async" : "sync");
    EXPECT_GE(num_steps, 1000);
    std::printf("%lld allocations in %lld steps of %d sequences (%s)\n",
                static_cast<long long>(num_found), static_cast<long long>(num_steps), kSequences,
                asynchronous ? "async" : "sync");
  }
}

// One step over all of a prompt, without threads, so that every allocation can be made to fail.
class StepWithoutMemory : public testing::Test {
 protected:
  static constexpr int32_t kPrompt = 40;

  StepWithoutMemory() : model_("t1", {.isa = best_isa(), .num_threads = 1, .block_tokens = 16}) {}

  std::unique_ptr<runner::LocalExecutor> make_executor() {
    auto executor = runner::LocalExecutor::create(
        model_.model(), {.num_slots = 2, .num_blocks = 8, .asynchronous = false});
    return *std::move(executor);
  }
  StepPlan make_plan(int64_t step, ImageId image) const {
    StepPlan plan;
    plan.step = step;
    SlotStart& start = plan.starts.emplace_back();
    start.slot = 0;
    start.seed = 1;
    start.max_tokens = 4;
    start.params.temperature = 0;
    start.params.logprobs = 3;
    start.prompt = some_ids(kPrompt, 9, model_.model_vocab());
    plan.ids = start.prompt;
    plan.blocks = {0, 1, 2};
    SegmentPlan& s = plan.segments.emplace_back();
    s.slot = 0;
    s.num_rows = kPrompt;
    s.num_blocks = 3;
    s.sample = true;
    if (image != 0) plan.saves.push_back({0, image, true});
    return plan;
  }

  struct Model : test::TestModel {
    using test::TestModel::TestModel;
    int32_t model_vocab() const { return config().vocab_size; }
  };
  Model model_;
};

TEST_F(StepWithoutMemory, FailsWithAReasonAndTheNextOneIsRight) {
  StepResult want;
  {
    Model other("t1", {.isa = best_isa(), .num_threads = 1, .block_tokens = 16});
    const auto executor = *runner::LocalExecutor::create(
        other.model(), {.num_slots = 2, .num_blocks = 8, .asynchronous = false});
    const StepPlan plan = make_plan(1, 0);
    executor->submit(plan);
    executor->wait(want);
  }
  ASSERT_TRUE(want.error.ok());
  ASSERT_EQ(want.tokens.size(), 1u);
  const auto executor = make_executor();
  int num_failed = 0, num_without_image = 0;
  // The first allocation fails, then the second of what is left to allocate, and so on until all
  // were made; then again, now that all buffers have grown.
  int64_t step = 0;
  int num_sweeps = 0;
  for (int64_t k = 1; num_sweeps < 2; ++k) {
    ASSERT_LT(k, 2000);
    ++step;
    const StepPlan plan = make_plan(step, step);
    StepResult result;
    fail_after = k;
    executor->submit(plan);
    const bool all_made = fail_after > 0;
    fail_after = 0;
    executor->wait(result);
    EXPECT_EQ(result.step, step);
    if (result.error.ok()) {
      ASSERT_EQ(result.tokens.size(), 1u);
      EXPECT_EQ(result.tokens[0].token, want.tokens[0].token) << "allocation " << k;
      EXPECT_EQ(result.tokens[0].logprob, want.tokens[0].logprob) << "allocation " << k;
      num_without_image += result.saved.empty() ? 1 : 0;
      if (all_made) {
        EXPECT_EQ(result.saved.size(), 1u);
        ++num_sweeps;
        k = 0;
      }
    } else {
      ++num_failed;
      EXPECT_EQ(result.error.code(), StatusCode::kResourceExhausted);
      EXPECT_NE(result.error.message().find("no memory left for a step of 40 tokens"),
                std::string::npos);
      EXPECT_TRUE(result.tokens.empty() && result.saved.empty());
    }
  }
  EXPECT_GT(num_failed, 5);
  EXPECT_GT(num_without_image, 0) << "no memory for an image is no error";
}

// It was planned before anybody knew that the step before would fail.
TEST_F(StepWithoutMemory, ADecodePlannedBehindItComputesNothing) {
  for (const int32_t max_draft : {0, 2}) {
    StepPlan next;
    SegmentPlan& s = next.segments.emplace_back();
    s.slot = 0;
    s.start = kPrompt;
    s.continues = max_draft > 0;
    s.num_drafts = max_draft;
    s.num_rows = 1 + max_draft;
    s.sample = true;
    next.ids.assign(static_cast<size_t>(s.num_rows), kPendingToken);
    const auto executor = *runner::LocalExecutor::create(
        model_.model(),
        {.num_slots = 2, .num_blocks = 8, .asynchronous = false, .max_draft = max_draft});
    int num_failed = 0, num_done = 0;
    for (int64_t k = 1; num_done < 2; ++k) {
      ASSERT_LT(k, 2000);
      StepPlan plan = make_plan(2 * k, 0);
      plan.segments[0].next_drafts = max_draft;
      next.step = 2 * k + 1;
      next.saves = {{0, 2 * k, true}};
      StepResult first, second;
      fail_after = k;
      executor->submit(plan);
      fail_after = 0;
      executor->wait(first);
      executor->submit(next);
      executor->wait(second);
      ASSERT_TRUE(second.error.ok()) << second.error.to_string();
      (first.error.ok() ? num_done : num_failed) += 1;
      const bool has_tokens = !second.tokens.empty() && second.tokens[0].error.ok();
      EXPECT_EQ(has_tokens, first.error.ok()) << "allocation " << k;
      EXPECT_EQ(second.tokens.empty(), !first.error.ok() && max_draft > 0) << "allocation " << k;
      EXPECT_EQ(second.saved.empty(), !first.error.ok()) << "allocation " << k;
    }
    EXPECT_GT(num_failed, 5) << max_draft;
  }
}

}  // namespace
}  // namespace fathom::engine
