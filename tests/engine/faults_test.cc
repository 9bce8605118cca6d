// What goes wrong below the engine, and its own end.

#include <set>
#include <thread>

#include "engine/fake_engine.h"

namespace fathom::engine {
namespace {

class EngineFaults : public FakeEngine {
 protected:
  // Requests 2, 3, ... in two slots.
  void submit_all(int num) {
    for (int32_t i = 0; i < num; ++i) {
      requests_.push_back(make_request(2 + i, 5 + i, 6 + i));
      ids_.push_back(submit(requests_.back()));
    }
  }
  std::vector<Request> requests_;
  std::vector<RequestId> ids_;
};
INSTANTIATE_TEST_SUITE_P(Stepping, EngineFaults, testing::Bool(), stepping_name);

// A GPU that is lost fails every later step: nobody is left waiting for one.
TEST_P(EngineFaults, ALostDeviceEndsAllRequestsAndTakesNone) {
  options_.scheduler.num_slots = 2;
  int step = 0, num_told = 0;  // engine thread
  script_->damage = [&](const Tags&, StepResult& result) {
    if (++step < 4) return;
    script_->is_lost = true;
    result = {.step = result.step};
    result.error = Status(StatusCode::kInternal, "the GPU is lost");
  };
  options_.on_lost = [&](const Status& error) {
    EXPECT_EQ(error.message(), "the GPU is lost");
    ++num_told;
  };
  script_->close();
  start();
  submit_all(9);  // two have slots, the others wait
  script_->open();
  ASSERT_TRUE(answers_.wait_for(*engine_, 9));
  for (const RequestId id : ids_) {
    EXPECT_EQ((answers_[{id, 0}].finish), FinishReason::kError) << id;
    EXPECT_EQ((answers_[{id, 0}].error.message()), "the GPU is lost") << id;
  }
  engine_->drain();  // nothing is open
  const Result<RequestId> late = engine_->submit(make_request(40, 5, 6));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code(), StatusCode::kInternal);
  EXPECT_EQ(late.error().message(), "the GPU is lost");
  engine_.reset();
  EXPECT_EQ(num_told, 1);
}

TEST_P(EngineFaults, FailedStepFailsItsRequestsOnly) {
  options_.scheduler.num_slots = 2;
  int step = 0;
  std::set<int32_t> failed;  // engine thread, until the engine is idle
  script_->damage = [&](const Tags& tags, StepResult& result) {
    if (++step != 4) return;
    failed.insert(tags.begin(), tags.end());
    result = {.step = result.step};
    result.error = Status(StatusCode::kInternal, "the machine is on fire");
  };
  script_->close();  // both slots are taken in the fourth step, however slowly requests come
  start();
  submit_all(9);
  script_->open();
  wait_for(9);
  EXPECT_EQ(failed.size(), 2u);
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (!failed.contains(requests_[i].prompt.front())) {
      expect_complete(requests_[i], ids_[i]);
      continue;
    }
    EXPECT_EQ((answers_[{ids_[i], 0}].finish), FinishReason::kError);
    EXPECT_NE((answers_[{ids_[i], 0}].error.message().find("on fire")), std::string::npos);
  }
}

TEST_P(EngineFaults, NanOfOneSequenceFailsThatOneOnly) {
  options_.scheduler.num_slots = 4;
  int num_tokens = 0;
  script_->damage = [&](const Tags& tags, StepResult& result) {
    if (result.tokens.size() != tags.size()) return;  // with a chunk that samples nothing
    for (size_t i = 0; i < tags.size(); ++i) {
      if (tags[i] != 4 || ++num_tokens != 3) continue;
      result.tokens[i].error = Status(StatusCode::kInternal, "logit 7 is NaN");
      result.tokens[i].token = -1;
    }
  };
  start();
  submit_all(6);
  wait_for(6);
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (requests_[i].prompt.front() != 4) {
      expect_complete(requests_[i], ids_[i]);
      continue;
    }
    const Answer& a = answers_[{ids_[i], 0}];
    EXPECT_EQ(a.finish, FinishReason::kError);
    EXPECT_NE(a.error.message().find("NaN"), std::string::npos);
    std::vector<int32_t> want = expected(requests_[i]);
    EXPECT_LT(a.tokens.size(), want.size());
    want.resize(a.tokens.size());
    EXPECT_EQ(a.tokens, want);
  }
}

TEST_P(EngineFaults, EveryStepFailsAndEveryRequestSaysSo) {
  script_->damage = [](const Tags&, StepResult& result) {
    result = {.step = result.step};
    result.error = Status(StatusCode::kInternal, "no more");
  };
  start();
  submit_all(20);
  wait_for(20);
  for (const auto& [key, answer] : answers_) EXPECT_EQ(answer.finish, FinishReason::kError);
}

TEST_P(EngineFaults, DrainRefusesNewRequestsAndReturnsWhenAllAreDone) {
  script_->close();
  start();
  submit_all(6);
  script_->let(2);
  std::atomic<bool> is_drained = false;
  std::thread drain([&] {
    engine_->drain();
    is_drained = true;
  });
  // It refuses from the moment in which drain() has begun.
  Result<RequestId> refused = RequestId{0};
  int num_before = 0;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  bool is_refused = false;
  while (!is_refused && std::chrono::steady_clock::now() < give_up) {
    refused = engine_->submit(make_request(30, 3, 2));
    is_refused = !refused && refused.error().code() == StatusCode::kCancelled;
    if (refused) ++num_before;  // else the queue is full
    std::this_thread::yield();
  }
  EXPECT_TRUE(is_refused);
  EXPECT_FALSE(is_drained);
  script_->open();
  drain.join();
  take_events();  // all of them are there
  EXPECT_EQ(answers_.num_finished(), 6 + num_before);
  for (size_t i = 0; i < ids_.size(); ++i) expect_complete(requests_[i], ids_[i]);
}

TEST_P(EngineFaults, DrainOfAnIdleEngineReturnsAtOnce) {
  start();
  engine_->drain();
  EXPECT_FALSE(engine_->submit(make_request(3, 3, 3)).has_value());
}

TEST_P(EngineFaults, DestructionWithRequestsRunningDoesNotWaitForTheirEnds) {
  options_.scheduler.max_context = 4000;
  options_.scheduler.num_blocks = 4000;
  script_->close();
  start();
  for (int32_t i = 0; i < 20; ++i) submit(make_request(2 + i, 30, 3000));  // 15,000 steps
  script_->let(5);
  std::thread destroy([this] { engine_.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  script_->open();
  destroy.join();
  EXPECT_LT(script_->submitted().size(), 5000u);
}

TEST_P(EngineFaults, DestructionOfAnEngineThatNeverHadARequestIsQuick) { start(); }

}  // namespace
}  // namespace fathom::engine
