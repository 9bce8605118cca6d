// What is accepted, what is refused, and that what is accepted ends as the model says.

#include <cmath>

#include "engine/fake_engine.h"

namespace fathom::engine {
namespace {

class EngineRequests : public FakeEngine {};
INSTANTIATE_TEST_SUITE_P(Stepping, EngineRequests, testing::Bool(), stepping_name);

TEST_P(EngineRequests, EverySampleGetsItsTokensAndOneEnd) {
  start();
  std::vector<std::pair<RequestId, Request>> requests;
  int num_samples = 0;
  for (int32_t i = 0; i < 40; ++i) {
    Request r = make_request(2 + i, 1 + i * 7 % 60, 1 + i * 5 % 23);
    r.n = i % 4 == 0 ? 3 : 1;
    r.prefill = i % 3 == 0 ? PrefillMode::kExact : PrefillMode::kReplay;
    r.priority = i % 5 - 2;
    r.params.ignore_eos = i % 2 == 0;
    if (i % 6 == 1) r.stop_ids = {10, 20, 30};
    if (i % 7 == 2) r.forced = {4, 5, 6};
    num_samples += r.n;
    requests.emplace_back(submit(r), r);
  }
  wait_for(num_samples);
  engine_->drain();
  take_events();
  EXPECT_EQ(answers_.num_finished(), num_samples);
  for (const auto& [id, request] : requests) expect_complete(request, id);
}

TEST_P(EngineRequests, PromptLogprobsComeInOrderBeforeTheFirstToken) {
  start();
  Request r = make_request(7, 45, 6);  // three steps
  r.prompt_logprobs = 0;
  r.n = 2;
  const Request other = make_request(9, 30, 9);
  const RequestId id = submit(r), other_id = submit(other);
  wait_for(3);
  expect_complete(r, id);
  expect_complete(other, other_id);
  // Their order is checked by Answers.
  const auto& logprobs = answers_[{id, 0}].prompt_logprobs;
  ASSERT_EQ(logprobs.size(), r.prompt.size() - 1);
  for (size_t i = 0; i < logprobs.size(); ++i) EXPECT_EQ(logprobs[i].token.id, r.prompt[i + 1]);
  EXPECT_TRUE((answers_[{id, 1}].prompt_logprobs.empty()));
  EXPECT_TRUE((answers_[{other_id, 0}].prompt_logprobs.empty()));
}

TEST_P(EngineRequests, BadOnesAreRefusedByNameAndOthersGoOn) {
  start();
  const Request good = make_request(3, 20, 30);
  const RequestId id = submit(good);
  const auto refused = [&](Request r, StatusCode code, const std::string& message) {
    const Result<RequestId> result = engine_->submit(std::move(r));
    ASSERT_FALSE(result.has_value()) << message;
    EXPECT_EQ(result.error().code(), code) << result.error().to_string();
    EXPECT_NE(result.error().message().find(message), std::string::npos)
        << "'" << result.error().message() << "' does not say '" << message << "'";
  };
  const auto changed = [&](const auto& change) {
    Request r = good;
    change(r);
    return r;
  };
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  refused(changed([](Request& r) { r.prompt.clear(); }), kInvalid, "prompt is empty");
  refused(changed([](Request& r) { r.prompt[4] = 60; }), kInvalid, "prompt token 4 is 60");
  refused(changed([](Request& r) { r.prompt[0] = -1; }), kInvalid, "prompt token 0 is -1");
  refused(changed([](Request& r) { r.stop_ids = {1, 99}; }), kInvalid, "stop token 1 is 99");
  refused(changed([](Request& r) { r.forced = {-1}; }), kInvalid, "forced token 0 is -1");
  refused(changed([](Request& r) { r.n = 0; }), kInvalid, "n is 0");
  refused(changed([](Request& r) { r.n = 1 << 30; }), kInvalid, "n is 1073741824");
  refused(changed([](Request& r) { r.params.temperature = -1; }), kInvalid, "temperature");
  refused(changed([](Request& r) { r.params.max_tokens = -1; }), kInvalid, "max_tokens");
  refused(changed([](Request& r) { r.params.max_tokens = 1 << 30; }), kInvalid, "context is 200");
  refused(changed([](Request& r) { r.params.max_tokens = 181; }), kInvalid, "context is 200");
  refused(changed([](Request& r) { r.prompt.assign(500, 5); }), kInvalid, "context is 200");
  refused(changed([](Request& r) { r.prompt_logprobs = 61; }), kInvalid, "prompt_logprobs is 61");
  refused(changed([](Request& r) { r.prompt_logprobs = -2; }), kInvalid, "prompt_logprobs is -2");
  // A deadline that was over before it was sent must not mean that there is none.
  refused(changed([](Request& r) { r.timeout_s = -3; }), StatusCode::kDeadlineExceeded,
          "time limit is over already");
  refused(changed([](Request& r) { r.timeout_s = 0; }), StatusCode::kDeadlineExceeded,
          "time limit is over already");
  refused(changed([](Request& r) { r.params.min_tokens = 31; }), kInvalid, "min_tokens is 31");
  refused(changed([](Request& r) {
            r.params.max_tokens = 0;
            r.params.min_tokens = 190;
          }),
          kInvalid, "context is 200");
  refused(changed([](Request& r) { r.params.bad_words = {{3, 60}}; }), kInvalid, "bad_words is 60");
  refused(changed([](Request& r) { r.params.allowed_ids = {-1}; }), kInvalid, "allowed_ids is -1");
  refused(changed([](Request& r) { r.media = {{.position = 15, .num_tokens = 6}}; }), kInvalid,
          "media segment 0 has 6 tokens from position 15");
  refused(changed([](Request& r) {
            r.media = {{.position = 2, .num_tokens = 3}, {.position = 4, .num_tokens = 3}};
          }),
          kInvalid, "media segment 1");
  refused(changed([](Request& r) {
            r.media = {{.position = 2, .num_tokens = 3}};
            r.media[0].embeddings = std::make_shared<const std::vector<uint16_t>>(5);
          }),
          kInvalid, "embeddings of 5 values");
  refused(changed([](Request& r) { r.media = {{.position = -1, .num_tokens = 3}}; }), kInvalid,
          "media segment 0");
  refused(changed([](Request& r) { r.timeout_s = std::nan(""); }), kInvalid, "timeout_s is");
  wait_for(1);
  expect_complete(good, id);
  EXPECT_EQ(answers_.size(), 1u) << "a refused request had an event";
}

TEST_P(EngineRequests, OneThatNeedsMoreBlocksThanThereAreIsRefused) {
  options_.scheduler.num_blocks = 6;  // 24 tokens
  start();
  const Request good = make_request(3, 14, 10);
  const RequestId id = submit(good);
  const Result<RequestId> result = engine_->submit(make_request(4, 15, 10));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(result.error().message().find("needs 7 KV blocks, there are 6"), std::string::npos)
      << result.error().message();
  // Without a limit of its own a request ends where the memory does.
  Request open_end = make_request(5, 20, 0);
  const RequestId open_id = submit(open_end);
  wait_for(2);
  expect_complete(good, id);
  open_end.params.max_tokens = 4;
  expect_complete(open_end, open_id);
}

TEST_P(EngineRequests, OneAskedForMoreThanTheQueueHoldsIsRefusedUntilThereIsRoom) {
  options_.max_queue = 3;
  script_->close();
  start();
  for (int32_t i = 0; i < 3; ++i) submit(make_request(2 + i, 5, 4));
  const Result<RequestId> result = engine_->submit(make_request(9, 5, 4));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(result.error().message().find("queue is full (3"), std::string::npos);
  script_->open();
  wait_for(3);
  const Request late = make_request(9, 5, 4);
  const RequestId id = submit(late);
  wait_for(4);
  expect_complete(late, id);
}

TEST_P(EngineRequests, TenThousandAreQueuedAndAllEnd) {
  constexpr int kNum = 10000;
  options_.max_queue = kNum;
  options_.scheduler.num_slots = 16;
  options_.scheduler.step_tokens = 128;
  script_->close();
  start();
  std::vector<RequestId> ids;
  for (int32_t i = 0; i < kNum; ++i) {
    ids.push_back(submit(make_request(2 + i % 50, 1 + i % 9, 1 + i % 3)));
  }
  const Result<RequestId> result = engine_->submit(make_request(2, 1, 1));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), StatusCode::kResourceExhausted);
  script_->open();
  wait_for(kNum);
  engine_->drain();
  take_events();
  EXPECT_EQ(answers_.num_finished(), kNum);
  for (int32_t i = 0; i < kNum && !HasFailure(); ++i) {
    expect_complete(make_request(2 + i % 50, 1 + i % 9, 1 + i % 3), ids[static_cast<size_t>(i)]);
  }
}

TEST_P(EngineRequests, TokensFoundInTheCacheAreReportedOnce) {
  start();
  const Request r = make_request(3, 41, 6);
  const RequestId first = submit(r);
  wait_for(1);
  const RequestId second = submit(r);
  wait_for(2);
  expect_complete(r, first);
  expect_complete(r, second);
  EXPECT_EQ((answers_[{first, 0}].cached_tokens), 0);
  EXPECT_EQ((answers_[{second, 0}].cached_tokens), 40);
  EXPECT_EQ(engine_->stats().cached_tokens, 40);
}

TEST_P(EngineRequests, TheTimeInTheQueueIsReportedOnce) {
  script_->close();
  options_.scheduler.num_slots = 1;
  start();
  const RequestId first = submit(make_request(3, 6, 8));
  const RequestId second = submit(make_request(4, 6, 8));
  script_->let(4);
  now_s_ = now_s_ + 3;
  script_->open();
  wait_for(2);
  EXPECT_EQ((answers_[{first, 0}].queue_s), 0);
  EXPECT_EQ((answers_[{second, 0}].queue_s), 3);
}

TEST_P(EngineRequests, StatsCountWhatRuns) {
  script_->close();
  options_.scheduler.num_slots = 2;
  start();
  for (int32_t i = 0; i < 5; ++i) submit(make_request(2 + i, 6, 20));
  script_->let(4);
  const EngineStats busy = engine_->stats();
  EXPECT_EQ(busy.running, 2);
  EXPECT_EQ(busy.waiting, 3);
  EXPECT_EQ(busy.steps, 4);
  EXPECT_LT(busy.free_blocks, busy.num_blocks);
  EXPECT_GT(busy.busy_s, 0);
  script_->open();
  wait_for(5);
  const EngineStats idle = engine_->stats();
  EXPECT_EQ(idle.running, 0);
  EXPECT_EQ(idle.waiting, 0);
  EXPECT_GE(idle.computed_tokens, 5 * (6 + 19));
}

}  // namespace
}  // namespace fathom::engine
