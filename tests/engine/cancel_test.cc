// Ends that clients and clocks bring about.

#include <random>
#include <thread>

#include "engine/fake_engine.h"

namespace fathom::engine {
namespace {

class EngineCancel : public FakeEngine {
 protected:
  // Steps that were handed to the executor with rows of a sequence.
  int64_t num_steps_with(int32_t tag) {
    int64_t n = 0;
    for (const Tags& tags : script_->submitted()) n += std::count(tags.begin(), tags.end(), tag);
    return n;
  }
};
INSTANTIATE_TEST_SUITE_P(Stepping, EngineCancel, testing::Bool(), stepping_name);

TEST_P(EngineCancel, EndsARunningRequestWithinAStep) {
  script_->close();
  start();
  const Request kept = make_request(3, 10, 40);
  const RequestId kept_id = submit(kept), id = submit(make_request(4, 10, 40));
  script_->let(6);
  engine_->cancel(id);
  script_->let(1);
  take_events();
  EXPECT_EQ((answers_[{id, 0}].finish), FinishReason::kCancelled);
  const int64_t num_steps = num_steps_with(4);
  script_->open();
  wait_for(2);
  EXPECT_EQ(num_steps_with(4), num_steps) << "it went on after its end";
  expect_complete(kept, kept_id);
}

TEST_P(EngineCancel, EndsAWaitingRequestWithinAStepAndItNeverRuns) {
  options_.scheduler.num_slots = 1;
  script_->close();
  start();
  const Request kept = make_request(3, 10, 20);
  const RequestId kept_id = submit(kept), id = submit(make_request(4, 10, 20));
  script_->let(3);
  engine_->cancel(id);
  script_->let(1);
  take_events();
  EXPECT_EQ((answers_[{id, 0}].finish), FinishReason::kCancelled);
  EXPECT_EQ(engine_->stats().waiting, 0);
  script_->open();
  wait_for(2);
  EXPECT_EQ(num_steps_with(4), 0);
  expect_complete(kept, kept_id);
}

TEST_P(EngineCancel, EndsARequestWhosePromptIsInFlight) {
  script_->close();
  start();
  const Request kept = make_request(3, 4, 30);
  const RequestId kept_id = submit(kept), id = submit(make_request(4, 150, 20));
  script_->let(2);
  engine_->cancel(id);
  script_->let(1);
  take_events();
  EXPECT_EQ((answers_[{id, 0}].finish), FinishReason::kCancelled);
  EXPECT_TRUE((answers_[{id, 0}].tokens.empty()));
  script_->open();
  wait_for(2);
  expect_complete(kept, kept_id);
}

TEST_P(EngineCancel, EndsEverySampleThatIsLeft) {
  script_->close();
  start();
  const Request kept = make_request(3, 4, 30);
  const RequestId kept_id = submit(kept);
  Request many = make_request(4, 12, 30);
  many.n = 9;  // more than there are slots
  const RequestId id = submit(many);
  script_->let(8);
  engine_->cancel(id);
  script_->let(1);
  take_events();
  for (int32_t i = 0; i < many.n; ++i) {
    EXPECT_EQ((answers_[{id, i}].finish), FinishReason::kCancelled) << i;
  }
  script_->open();
  wait_for(1 + many.n);
  expect_complete(kept, kept_id);
}

TEST_P(EngineCancel, DoesNothingToWhatIsDoneOrUnknown) {
  start();
  const Request r = make_request(3, 10, 5);
  const RequestId id = submit(r);
  wait_for(1);
  engine_->cancel(id);
  engine_->cancel(id + 100);
  engine_->cancel(-1);
  const RequestId next = submit(r);
  wait_for(2);
  expect_complete(r, next);
  EXPECT_EQ(answers_.size(), 2u);
}

TEST_P(EngineCancel, StormFromManyThreadsEndsEveryRequestOnce) {
  options_.scheduler.num_blocks = 50;  // preemption too
  start();
  constexpr int kThreads = 4, kEach = 150;
  std::vector<std::vector<std::pair<RequestId, Request>>> sent(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 rng(static_cast<uint32_t>(t));
      auto& mine = sent[static_cast<size_t>(t)];
      for (int i = 0; i < kEach; ++i) {
        Request r =
            make_request(2 + static_cast<int32_t>(rng() % 50), 1 + static_cast<int>(rng() % 60),
                         1 + static_cast<int32_t>(rng() % 30));
        r.n = rng() % 5 == 0 ? 3 : 1;
        const Result<RequestId> id = engine_->submit(r);
        ASSERT_TRUE(id.has_value());
        mine.emplace_back(*id, r);
        if (rng() % 3 == 0) engine_->cancel(mine[rng() % mine.size()].first);
        if (rng() % 16 == 0) (void)engine_->stats();
      }
    });
  }
  std::thread reader([&] {
    while (answers_.size() < kThreads * kEach)
      answers_.add(engine_->wait(std::chrono::milliseconds(5)));
  });
  for (std::thread& t : threads) t.join();
  engine_->drain();
  reader.join();
  take_events();
  int num_samples = 0, num_cancelled = 0;
  for (const auto& mine : sent) {
    for (const auto& [id, request] : mine) {
      num_samples += request.n;
      for (int32_t i = 0; i < request.n; ++i) {
        const Answer& a = answers_[{id, i}];
        if (a.finish == FinishReason::kCancelled) {
          ++num_cancelled;
          std::vector<int32_t> want = expected(request, i);
          ASSERT_LE(a.tokens.size(), want.size());
          want.resize(a.tokens.size());
          EXPECT_EQ(a.tokens, want);
        } else {
          EXPECT_EQ(a.tokens, expected(request, i));
        }
      }
    }
  }
  EXPECT_EQ(answers_.num_finished(), num_samples);
  EXPECT_GT(num_cancelled, 10);
}

TEST_P(EngineCancel, DeadlineEndsARunningAndAWaitingRequestWithAnError) {
  options_.scheduler.num_slots = 2;
  script_->close();
  start();
  const Request kept = make_request(3, 10, 40);
  Request running = make_request(4, 10, 40), waiting = make_request(5, 10, 40);
  running.timeout_s = 5;
  waiting.timeout_s = 6;
  const RequestId kept_id = submit(kept), id = submit(running), waiting_id = submit(waiting);
  script_->let(6);
  take_events();
  EXPECT_EQ((answers_[{id, 0}].finish), FinishReason::kNone);
  now_s_ = 107;
  script_->let(1);
  take_events();
  for (const RequestId late : {id, waiting_id}) {
    EXPECT_EQ((answers_[{late, 0}].finish), FinishReason::kError);
    EXPECT_NE((answers_[{late, 0}].error.message().find("time limit")), std::string::npos);
  }
  script_->open();
  wait_for(3);
  expect_complete(kept, kept_id);
}

TEST_P(EngineCancel, DeadlineInThePastEndsARequestBeforeItsFirstToken) {
  // The clock has moved on whenever the loop looks.
  options_.now_s = [this] { return now_s_ = now_s_ + 1; };
  start();
  Request r = make_request(4, 10, 40);
  r.timeout_s = 1e-9;
  const RequestId id = submit(r);
  wait_for(1);
  EXPECT_EQ((answers_[{id, 0}].finish), FinishReason::kError);
  EXPECT_TRUE((answers_[{id, 0}].tokens.empty()));
  EXPECT_EQ(num_steps_with(4), 0);
}

}  // namespace
}  // namespace fathom::engine
