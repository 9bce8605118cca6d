// The engine loop over the scripted executor, with a clock that the test moves.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/answers.h"
#include "engine/engine_loop.h"
#include "engine/scripted_executor.h"
#include "harness/fake_model.h"

namespace fathom::engine {

class FakeEngine : public testing::TestWithParam<bool> {
 protected:
  FakeEngine() {
    options_.asynchronous = GetParam();
    options_.vocab_size = harness::kFakeVocab;
    options_.now_s = [this] { return now_s_.load(); };
    scheduler::SchedulerOptions& s = options_.scheduler;
    s.num_slots = 4;
    s.num_blocks = 64;
    s.block_tokens = 4;
    s.step_tokens = 16;
    s.window = 8;
    s.max_context = 200;
    s.eos_token = harness::kFakeEos;
    s.resume_every = 16;
    s.resume_budget_bytes = 5000;
  }
  void TearDown() override {
    script_->open();
    engine_.reset();
    EXPECT_EQ(script_->fault(), "");
    EXPECT_EQ(answers_.fault(), "");
  }

  // With options_ and script_->damage as they are.
  void start() {
    const scheduler::SchedulerOptions& s = options_.scheduler;
    engine_ = std::make_unique<EngineLoop>(
        options_, std::make_unique<ScriptedExecutor>(
                      harness::FakeExecutorOptions{.num_slots = s.num_slots,
                                                   .num_blocks = s.num_blocks,
                                                   .block_tokens = s.block_tokens,
                                                   .window = s.window,
                                                   .eos_every = kEosEvery},
                      script_));
  }
  // Its sequence is known to the script by the first token.
  static Request make_request(int32_t first_token, int num_prompt, int32_t max_tokens) {
    Request r;
    for (int i = 0; i < num_prompt; ++i) {
      r.prompt.push_back(i == 0 ? first_token : 2 + (first_token * 7 + i * 5) % 50);
    }
    r.params.max_tokens = max_tokens;
    r.params.ignore_eos = true;
    r.params.seed = static_cast<uint64_t>(first_token);
    return r;
  }
  RequestId submit(const Request& request) {
    Result<RequestId> id = engine_->submit(request);
    EXPECT_TRUE(id.has_value()) << id.error().to_string();
    return id ? *id : -1;
  }
  // What the fake model says, whatever the schedule.
  std::vector<int32_t> expected(const Request& r, int32_t index = 0) const {
    const bool exact = r.prefill == PrefillMode::kExact || r.prompt_logprobs >= 0;
    std::vector<int32_t> tokens = r.prompt;
    std::vector<int32_t> ends = r.stop_ids;
    if (!r.params.ignore_eos) ends.push_back(harness::kFakeEos);
    while (std::ssize(tokens) < std::ssize(r.prompt) + r.params.max_tokens) {
      const auto num_output = tokens.size() - r.prompt.size();
      const bool is_early = std::cmp_less(num_output, r.params.min_tokens);
      tokens.push_back(
          num_output < r.forced.size()
              ? r.forced[num_output]
              : harness::fake_next(tokens, std::ssize(r.prompt), exact, options_.scheduler.window,
                                   *r.params.seed + static_cast<uint64_t>(index), kEosEvery,
                                   is_early ? ends : std::vector<int32_t>(), r.media));
      if (!is_early && std::count(ends.begin(), ends.end(), tokens.back()) > 0) break;
    }
    return {tokens.begin() + std::ssize(r.prompt), tokens.end()};
  }
  void expect_complete(const Request& request, RequestId id) {
    for (int32_t i = 0; i < request.n; ++i) {
      const Answer& a = answers_[{id, i}];
      EXPECT_EQ(a.tokens, expected(request, i)) << id << '.' << i;
      EXPECT_TRUE(a.finish == FinishReason::kLength || a.finish == FinishReason::kStop)
          << id << '.' << i << ": " << a.error.to_string();
    }
  }
  void wait_for(int num_finished) {
    EXPECT_TRUE(answers_.wait_for(*engine_, num_finished))
        << answers_.num_finished() << " of " << num_finished << " samples ended";
  }
  void take_events() { answers_.add(engine_->wait(std::chrono::milliseconds(0))); }

  static constexpr int kEosEvery = 40;
  EngineLoopOptions options_;
  std::atomic<double> now_s_ = 100;
  std::shared_ptr<Script> script_ = std::make_shared<Script>();
  Answers answers_;
  std::unique_ptr<EngineLoop> engine_;
};

inline std::string stepping_name(const testing::TestParamInfo<bool>& info) {
  return info.param ? "async" : "sync";
}

}  // namespace fathom::engine
