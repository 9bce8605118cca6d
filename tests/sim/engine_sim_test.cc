// Random traffic through the whole engine over the fake executor: random requests, cancels,
// deadlines on a clock that the test moves, failing steps and rows. Every sample gets one end; what
// it got before is what the model says; nothing is left over.
//
// FATHOM_SIM_SEED=N plays one seed. Which step a cancel meets depends on threads, so a seed may
// have to be played several times.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <random>

#include "engine/answers.h"
#include "engine/engine_loop.h"
#include "harness/fake_executor.h"
#include "harness/fake_model.h"

namespace fathom::engine {
namespace {

struct Totals {
  int64_t samples = 0, complete = 0, cancelled = 0, late = 0, failed = 0, refused = 0, steps = 0;
};

class EngineSimulation {
 public:
  EngineSimulation(uint64_t seed, Totals& totals) : seed_(seed), rng_(seed), totals_(totals) {
    options_.asynchronous = one_in(2);
    options_.vocab_size = harness::kFakeVocab;
    options_.max_queue = one_in(3) ? 6 : 1000;
    options_.now_s = [this] { return now_s_.load(); };
    scheduler::SchedulerOptions& s = options_.scheduler;
    s.num_slots = in(1, 8);
    s.block_tokens = 4 << in(0, 2);
    s.num_blocks = in(100, 400) / s.block_tokens;
    s.step_tokens = in(1, 64);
    s.window = 8;
    s.max_context = 400;
    s.eos_token = harness::kFakeEos;
    s.resume_every = 16;
    s.resume_budget_bytes = one_in(3) ? 0 : in(200, 5000);
    s.prefix_cache = !one_in(4);
    s.replay_windows = one_in(4);
    s.max_draft = one_in(2) ? in(1, 5) : 0;
    harness::FakeExecutorOptions e;
    e.num_slots = s.num_slots;
    e.num_blocks = s.num_blocks;
    e.block_tokens = s.block_tokens;
    e.window = s.window;
    e.eos_every = kEosEvery;
    e.seed = seed;
    if (one_in(3)) e.step_error_rate = 0.02;
    if (one_in(3)) e.token_error_rate = 0.01;
    auto executor = std::make_unique<harness::FakeExecutor>(e);
    executor_ = executor.get();
    engine_ = std::make_unique<EngineLoop>(options_, std::move(executor));
  }

  void run() {
    for (int i = in(5, 25); i-- > 0;) {
      submit();
      if (one_in(3)) answers_.add(engine_->wait(std::chrono::milliseconds(in(0, 1))));
      if (one_in(4)) now_s_ = now_s_ + in(0, 3);
      if (one_in(5) && !open_.empty()) {
        const auto& victim = open_[static_cast<size_t>(in(0, static_cast<int>(open_.size()) - 1))];
        engine_->cancel(victim.first, one_in(2) ? Engine::kAllSamples : in(0, 2));
      }
    }
    now_s_ = now_s_ + 1;
    EXPECT_TRUE(answers_.wait_for(*engine_, num_samples_)) << "seed " << seed_;
    engine_->drain();
    answers_.add(engine_->wait(std::chrono::milliseconds(0)));
    EXPECT_EQ(answers_.num_finished(), num_samples_) << "seed " << seed_;
    EXPECT_EQ(answers_.fault(), "") << "seed " << seed_;
    for (const auto& [id, request] : open_) check(id, request);
    const EngineStats stats = engine_->stats();
    EXPECT_EQ(stats.running + stats.waiting, 0) << "seed " << seed_;
    totals_.steps += stats.steps;
    totals_.samples += num_samples_;
    engine_->drain();
    EXPECT_EQ(executor_->fault(), "") << "seed " << seed_;
  }

 private:
  int in(int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng_); }
  bool one_in(int n) { return in(1, n) == 1; }

  void submit() {
    Request r;
    // Few beginnings, so that prompts share them.
    const int document = in(2, 4);
    for (int i = in(1, 60); i-- > 0;) {
      r.prompt.push_back(2 + (document * 7 + static_cast<int>(r.prompt.size()) * 5) % 50);
    }
    if (one_in(2)) r.prompt.push_back(in(2, harness::kFakeVocab - 1));
    r.params.max_tokens = in(1, 30);
    r.params.min_tokens = one_in(3) ? in(0, r.params.max_tokens) : 0;
    r.params.ignore_eos = one_in(3);
    r.params.seed = rng_();
    r.priority = in(-1, 1);
    r.n = one_in(4) ? 3 : 1;
    r.prefill = one_in(3) ? PrefillMode::kExact : PrefillMode::kReplay;
    if (one_in(3)) r.timeout_s = in(1, 4);
    if (one_in(5)) r.cache_salt = "other";
    if (one_in(5)) r.stop_ids = {10, 20};
    if (one_in(4)) {
      MediaSegment m;
      m.position = in(0, static_cast<int>(r.prompt.size()) - 1);
      m.num_tokens = in(1, static_cast<int>(r.prompt.size() - static_cast<size_t>(m.position)));
      m.digest[0] = static_cast<uint8_t>(in(1, 2));
      r.media = {m};
    }
    const Result<RequestId> id = engine_->submit(r);
    if (!id) {
      ++totals_.refused;
      EXPECT_EQ(id.error().code(), StatusCode::kResourceExhausted) << id.error().to_string();
      return;
    }
    open_.emplace_back(*id, r);
    num_samples_ += r.n;
  }

  std::vector<int32_t> expected(const Request& r, int32_t index) const {
    std::vector<int32_t> tokens = r.prompt, ends = r.stop_ids;
    if (!r.params.ignore_eos) ends.push_back(harness::kFakeEos);
    while (std::ssize(tokens) < std::ssize(r.prompt) + r.params.max_tokens) {
      const bool is_early = std::ssize(tokens) - std::ssize(r.prompt) < r.params.min_tokens;
      tokens.push_back(harness::fake_next(
          tokens, std::ssize(r.prompt), r.prefill == PrefillMode::kExact, options_.scheduler.window,
          *r.params.seed + static_cast<uint64_t>(index), kEosEvery,
          is_early ? ends : std::vector<int32_t>(), r.media));
      if (!is_early && std::count(ends.begin(), ends.end(), tokens.back()) > 0) break;
    }
    return {tokens.begin() + std::ssize(r.prompt), tokens.end()};
  }

  void check(RequestId id, const Request& r) {
    for (int32_t i = 0; i < r.n; ++i) {
      const Answer& a = answers_[{id, i}];
      const std::vector<int32_t> want = expected(r, i);
      const std::string name = "seed " + std::to_string(seed_) + ", request " + std::to_string(id) +
                               "." + std::to_string(i);
      ASSERT_LE(a.tokens.size(), want.size()) << name;
      EXPECT_TRUE(std::equal(a.tokens.begin(), a.tokens.end(), want.begin())) << name;
      if (a.finish == FinishReason::kStop || a.finish == FinishReason::kLength) {
        ++totals_.complete;
        EXPECT_EQ(a.tokens.size(), want.size()) << name;
      } else if (a.finish == FinishReason::kCancelled) {
        ++totals_.cancelled;
      } else if (a.error.code() == StatusCode::kDeadlineExceeded) {
        ++totals_.late;
        EXPECT_TRUE(r.timeout_s.has_value()) << name;
      } else {
        ++totals_.failed;
        EXPECT_GT(executor_->num_errors(), 0) << name << ": " << a.error.to_string();
      }
    }
  }

  static constexpr int kEosEvery = 40;
  uint64_t seed_;
  std::mt19937_64 rng_;
  Totals& totals_;
  EngineLoopOptions options_;
  std::atomic<double> now_s_ = 10;
  harness::FakeExecutor* executor_;
  std::unique_ptr<EngineLoop> engine_;
  std::vector<std::pair<RequestId, Request>> open_;
  Answers answers_;
  int num_samples_ = 0;
};

TEST(EngineSimulation, EverySampleEndsOnceWithWhatTheModelSays) {
  const char* only = std::getenv("FATHOM_SIM_SEED");
  const uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 1;
  const uint64_t last = only != nullptr ? first : 150;
  Totals totals;
  for (uint64_t seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
    EngineSimulation(seed, totals).run();
  }
  std::printf(
      "%lld steps, %lld samples: %lld complete, %lld cancelled, %lld too late, %lld failed; %lld "
      "requests refused\n",
      static_cast<long long>(totals.steps), static_cast<long long>(totals.samples),
      static_cast<long long>(totals.complete), static_cast<long long>(totals.cancelled),
      static_cast<long long>(totals.late), static_cast<long long>(totals.failed),
      static_cast<long long>(totals.refused));
  if (only != nullptr) return;
  EXPECT_GT(totals.complete, 1000);
  EXPECT_GT(totals.cancelled, 20);
  EXPECT_GT(totals.late, 5);
  EXPECT_GT(totals.failed, 20);
}

}  // namespace
}  // namespace fathom::engine
