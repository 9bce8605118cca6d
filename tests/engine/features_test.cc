// What a request may ask for, through the public interface.

#include "engine/fake_engine.h"

namespace fathom::engine {
namespace {

class EngineFeatures : public FakeEngine {
 protected:
  // Runs it alone and waits for all its samples.
  RequestId run(const Request& request) {
    const RequestId id = submit(request);
    num_samples_ += request.n;
    wait_for(num_samples_);
    return id;
  }
  int64_t cached(const Request& request) {
    const RequestId id = run(request);
    expect_complete(request, id);
    return answers_[{id, 0}].cached_tokens;
  }
  static MediaSegment image(int64_t position, int64_t num_tokens, uint8_t content) {
    MediaSegment m;
    m.position = position;
    m.num_tokens = num_tokens;
    m.digest[0] = content;
    return m;
  }
  int num_samples_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Stepping, EngineFeatures, testing::Bool(), stepping_name);

TEST_P(EngineFeatures, AnAnswerHasMinTokensBeforeItEnds) {
  start();
  int num_stopped = 0;
  for (int32_t i = 0; i < 30; ++i) {
    Request r = make_request(2 + i, 9, 40);
    r.params.ignore_eos = false;
    r.stop_ids = {10, 20, 30, 40, 50};
    const auto free = expected(r);
    r.params.min_tokens = 12;
    const RequestId id = run(r);
    expect_complete(r, id);
    const Answer& a = answers_[{id, 0}];
    EXPECT_GE(a.tokens.size(), 12u);
    if (a.finish == FinishReason::kStop) {
      EXPECT_GT(a.tokens.size(), 12u);
      ++num_stopped;
    }
    for (size_t k = 0; k < 12; ++k) {
      EXPECT_NE(a.tokens[k], harness::kFakeEos);
      EXPECT_NE(a.tokens[k] % 10, 0) << "a stop id at " << k;
    }
  }
  EXPECT_GT(num_stopped, 10);
}

TEST_P(EngineFeatures, ASampleIsCancelledAndTheOthersGoOn) {
  script_->close();
  start();
  Request r = make_request(3, 9, 20);
  r.n = 3;
  const RequestId id = submit(r);
  script_->let(6);
  engine_->cancel(id, 1);
  engine_->cancel(id, 7);  // there is none
  script_->open();
  wait_for(3);
  EXPECT_EQ((answers_[{id, 1}].finish), FinishReason::kCancelled);
  const auto want = expected(r, 1), got = answers_[{id, 1}].tokens;
  EXPECT_LT(got.size(), want.size());
  EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin()));
  for (const int32_t i : {0, 2}) {
    EXPECT_EQ((answers_[{id, i}].tokens), expected(r, i));
    EXPECT_EQ((answers_[{id, i}].finish), FinishReason::kLength);
  }
  engine_->drain();
}

// The first sample computes the prompt for all of them.
TEST_P(EngineFeatures, TheFirstSampleIsCancelledWhileTheOthersWaitForItsPrompt) {
  script_->close();
  start();
  Request r = make_request(3, 60, 20);  // four steps of prompt
  r.n = 3;
  const RequestId id = submit(r);
  script_->let(1);
  engine_->cancel(id, 0);
  script_->open();
  wait_for(3);
  EXPECT_EQ((answers_[{id, 0}].finish), FinishReason::kCancelled);
  for (const int32_t i : {1, 2}) EXPECT_EQ((answers_[{id, i}].tokens), expected(r, i));
}

TEST_P(EngineFeatures, EverySampleReportsItsSeed) {
  start();
  Request r = make_request(3, 9, 4);
  r.n = 2;
  r.params.seed = 77;
  const RequestId given = run(r);
  EXPECT_EQ((answers_[{given, 0}].seed), 77u);
  EXPECT_EQ((answers_[{given, 1}].seed), 78u);
  r.params.seed.reset();
  const RequestId drawn = run(r);
  const uint64_t seed = answers_[{drawn, 0}].seed;
  EXPECT_EQ((answers_[{drawn, 1}].seed), seed + 1);
  // With the reported seed the answer comes again.
  r.params.seed = seed;
  const RequestId again = run(r);
  EXPECT_EQ((answers_[{again, 0}].tokens), (answers_[{drawn, 0}].tokens));
}

TEST_P(EngineFeatures, PromptsAreSharedWithinASaltOnly) {
  start();
  Request r = make_request(3, 41, 2);
  EXPECT_EQ(cached(r), 0);
  EXPECT_EQ(cached(r), 40);
  r.cache_salt = "tenant a";
  EXPECT_EQ(cached(r), 0);
  EXPECT_EQ(cached(r), 40);
  r.cache_salt = "tenant b";
  EXPECT_EQ(cached(r), 0);
  r.cache_salt.clear();
  EXPECT_EQ(cached(r), 40);
}

TEST_P(EngineFeatures, ImagesAreToldApartByTheirContent) {
  start();
  Request r = make_request(3, 61, 3);
  r.media = {image(18, 13, 1)};
  EXPECT_EQ(cached(r), 0);
  EXPECT_EQ(cached(r), 60);
  // Blocks of 4: another image has the four before it.
  r.media = {image(18, 13, 2)};
  EXPECT_EQ(cached(r), 16);
  EXPECT_EQ(cached(r), 60);
  r.media.clear();  // the same ids as text
  EXPECT_EQ(cached(r), 16);
  r.media = {image(18, 12, 1)};  // its last row is text
  EXPECT_EQ(cached(r), 16);
  r.media = {image(18, 13, 1), image(45, 2, 2)};
  EXPECT_EQ(cached(r), 44);
  r.media = {image(18, 13, 1)};
  EXPECT_EQ(cached(r), 60);
}

// A prompt that ends inside a block of another one finds that one's STATE there, if its images are
// the same.
TEST_P(EngineFeatures, ResumePointsBehindAnImageBelongToThatImage) {
  options_.scheduler.block_tokens = 16;
  options_.scheduler.num_blocks = 40;
  start();
  Request r = make_request(3, 40, 1);
  r.media = {image(33, 5, 1)};
  Request longer = make_request(3, 60, 3);
  longer.media = r.media;
  EXPECT_EQ(cached(r), 0);
  EXPECT_EQ(cached(longer), 40);
  longer.media = {image(33, 5, 2)};
  EXPECT_EQ(cached(longer), 32);
}

TEST_P(EngineFeatures, LowerPriorityNumbersAreServedFirst) {
  options_.scheduler.num_slots = 1;
  script_->close();
  start();
  const RequestId first = submit(make_request(2, 5, 6));
  script_->let(2);  // it has the slot
  Request late = make_request(3, 5, 2), urgent = make_request(4, 5, 2);
  late.priority = 5;
  urgent.priority = -5;
  const RequestId late_id = submit(late), urgent_id = submit(urgent);
  script_->open();
  std::vector<RequestId> ends;
  while (ends.size() < 3) {
    for (const TokenEvent& e : engine_->wait(std::chrono::milliseconds(100))) {
      if (e.finish != FinishReason::kNone) ends.push_back(e.request);
    }
  }
  EXPECT_EQ(ends, (std::vector<RequestId>{first, urgent_id, late_id}));
}

}  // namespace
}  // namespace fathom::engine
