// Limits of what is written, and images, on a real model through the public interface.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/model/model_engine.h"
#include "harness/random_values.h"

namespace fathom::engine {
namespace {

class ModelFeatures : public testing::Test {
 protected:
  ModelFeatures() : model_("t1", {.isa = best_isa(), .num_threads = 2, .block_tokens = 16}) {}

  void start(const Condition& c) { engine_ = make_engine(c, model_); }
  const Answer& run(const Request& request) {
    const Result<RequestId> id = engine_->submit(request);
    EXPECT_TRUE(id.has_value()) << id.error().to_string();
    if (!id) return none_;
    EXPECT_TRUE(answers_.wait_for(*engine_, answers_.num_finished() + request.n));
    EXPECT_EQ(answers_.fault(), "");
    return answers_[{*id, 0}];
  }
  std::vector<int32_t> ids(int64_t n) {
    std::vector<int32_t> out;
    for (int64_t i = 0; i < n; ++i) {
      out.push_back(static_cast<int32_t>(3 + random_.below(model_.config().vocab_size - 3)));
    }
    return out;
  }
  Request request(int64_t num_prompt, int32_t max_tokens) {
    Request r;
    r.prompt = ids(num_prompt);
    r.params.max_tokens = max_tokens;
    r.params.seed = 5;
    r.params.ignore_eos = true;
    r.params.logprobs = 2;
    return r;
  }
  MediaSegment image(int64_t position, int64_t num_tokens, uint8_t content) {
    MediaSegment m;
    m.position = position;
    m.num_tokens = num_tokens;
    m.digest[0] = content;
    harness::Random pixels(content);
    std::vector<uint16_t> rows;
    for (const Bf16 value : pixels.bf16_normals(num_tokens * model_.config().hidden_size)) {
      rows.push_back(value.bits);
    }
    m.embeddings = std::make_shared<const std::vector<uint16_t>>(std::move(rows));
    return m;
  }

  harness::Random random_{7};
  test::TestModel model_;
  std::unique_ptr<EngineLoop> engine_;
  Answers answers_;
  const Answer none_;
};

TEST_F(ModelFeatures, AllowedIdsBadWordsAndBiasShapeTheAnswer) {
  start({});
  Request r = request(20, 60);
  r.params.temperature = 5;
  r.params.allowed_ids = {10, 11, 12, 13};
  r.params.bad_words = {{13}, {10, 11}, {12, 12, 12}};
  std::set<int32_t> seen;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    r.params.seed = seed;
    const std::vector<int32_t> tokens = run(r).tokens;
    ASSERT_EQ(tokens.size(), 60u);
    seen.insert(tokens.begin(), tokens.end());
    for (size_t i = 1; i < tokens.size(); ++i) {
      EXPECT_FALSE(tokens[i - 1] == 10 && tokens[i] == 11) << i;
      EXPECT_FALSE(i > 1 && tokens[i - 2] == 12 && tokens[i - 1] == 12 && tokens[i] == 12) << i;
    }
  }
  EXPECT_EQ(seen, (std::set<int32_t>{10, 11, 12}));
  r.params.temperature = 0;
  r.params.logit_bias = {{11, 100.0f}};
  r.params.bad_words = {};
  EXPECT_EQ(run(r).tokens, std::vector<int32_t>(60, 11));
}

TEST_F(ModelFeatures, TheEndTokenIsMaskedUntilMinTokensAndLogprobsStayRaw) {
  start({});
  Request r = request(20, 30);
  const int32_t eos = model_.config().eos_token_id;
  r.params.ignore_eos = false;
  r.params.temperature = 0;
  r.params.logit_bias = {{eos, 100.0f}};
  EXPECT_EQ(run(r).tokens, std::vector<int32_t>{eos});
  r.params.min_tokens = 9;
  const std::vector<int32_t> tokens = run(r).tokens;
  ASSERT_EQ(tokens.size(), 10u);
  EXPECT_EQ(std::count(tokens.begin(), tokens.end(), eos), 1);
  EXPECT_EQ(tokens.back(), eos);
  // Without the bias it would have been chosen all the same.
  r.params.logit_bias = {};
  r.params.min_tokens = 0;
  r.forced = {tokens.begin(), tokens.end() - 1};
  const Answer free = run(r);
  EXPECT_TRUE(std::equal(r.forced.begin(), r.forced.end(), free.tokens.begin()));
}

// With log-probabilities the host draws from logits, without them the device does where they are:
// the same tokens, with drafts and without, whatever filters and masks there are.
TEST_F(ModelFeatures, TokensAreTheSameFromTheDeviceAndFromTheHost) {
  std::vector<SamplingParams> ways(6);
  ways[1].temperature = 0;
  ways[2].top_k = 40;
  ways[2].top_p = 0.9f;
  ways[3].min_p = 0.02f;
  ways[3].bad_words = {{7}, {9, 11}};
  ways[4].temperature = 1.5f;
  for (int32_t id = 5; id < 200; id += 3) ways[4].allowed_ids.push_back(id);
  ways[5].min_tokens = 30;
  std::vector<std::vector<int32_t>> want;
  for (const int32_t max_draft : {0, 3}) {
    engine_ = nullptr;
    answers_ = {};
    start({.max_draft = max_draft});
    for (size_t i = 0; i < ways.size(); ++i) {
      for (const int32_t logprobs : {0, -1}) {
        random_ = harness::Random(i + 1);
        Request r = request(20, 40);
        r.params = ways[i];
        r.params.max_tokens = 40;
        r.params.seed = 11;
        r.params.logprobs = logprobs;
        const std::vector<int32_t> tokens = run(r).tokens;
        ASSERT_FALSE(tokens.empty());
        if (want.size() == i) want.push_back(tokens);
        EXPECT_EQ(tokens, want[i])
            << "way " << i << ", drafts " << max_draft << ", logprobs " << logprobs;
      }
    }
  }
}

// Everything may be masked; that is the end of this request and of no other.
TEST_F(ModelFeatures, ARequestThatCanChooseNothingFailsAlone) {
  start({});
  Request bad = request(20, 30);
  bad.params.allowed_ids = {4, 5};
  bad.params.bad_words = {{5}, {4, 4}};
  const Request good = request(30, 30);
  const Result<RequestId> good_id = engine_->submit(good), bad_id = engine_->submit(bad);
  ASSERT_TRUE(good_id && bad_id);
  EXPECT_TRUE(answers_.wait_for(*engine_, 2));
  const Answer& a = answers_[{*bad_id, 0}];
  EXPECT_EQ(a.finish, FinishReason::kError);
  EXPECT_EQ(a.tokens, std::vector<int32_t>{4});
  EXPECT_NE(a.error.message().find("every token is masked"), std::string::npos);
  EXPECT_EQ((answers_[{*good_id, 0}].finish), FinishReason::kLength);
}

// Images of every length at every place, before, across and behind block borders: what is found
// of a prompt gives the bits of a prompt that finds nothing.
TEST_F(ModelFeatures, AHitOverImagesEqualsAMiss) {
  std::vector<Request> requests;
  for (int i = 0; i < 24; ++i) {
    Request r = request(60 + random_.below(240), 6);
    r.prefill = i % 2 == 0 ? PrefillMode::kReplay : PrefillMode::kExact;
    if (i % 3 == 0) r.prompt_logprobs = 1;
    int64_t from = random_.below(40);
    for (uint8_t k = 1; k < 4 && from + 2 < std::ssize(r.prompt); ++k) {
      const int64_t room = std::ssize(r.prompt) - from;
      const int64_t length = 1 + random_.below(std::min<int64_t>(room, 90));
      r.media.push_back(image(from, length, static_cast<uint8_t>(i * 4 + k)));
      std::fill_n(r.prompt.begin() + from, length, 9);  // one id for all its positions
      from += length + random_.below(30);
    }
    requests.push_back(r);
    // One that goes on behind it.
    const std::vector<int32_t> more = ids(1 + random_.below(40));
    r.prompt.insert(r.prompt.end(), more.begin(), more.end());
    requests.push_back(r);
  }
  std::vector<std::vector<uint32_t>> miss;
  start({.num_blocks = 60, .prefix_cache = false, .resume_budget_bytes = 0});
  for (const Request& r : requests) miss.push_back(bits_of(run(r)));
  for (const int64_t every : {16, 40}) {
    answers_ = {};
    start({.num_blocks = 2000, .step_tokens = 70, .resume_every = every});
    for (int round = 0; round < 2; ++round) {
      for (size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(bits_of(run(requests[i])), miss[i])
            << "request " << i << ", round " << round << ", points every " << every;
      }
    }
    EXPECT_GT(engine_->stats().cached_tokens, 8000);
  }
}

// Rows that are not numbers end the request that brought them, at its prompt or at its first token;
// the one beside it has the bits that it has alone, and what follows finds nothing of it.
TEST_F(ModelFeatures, NanInOneSequenceFailsThatOneOnly) {
  start({.num_blocks = 200});
  const Request good = request(90, 20);
  const std::vector<uint32_t> alone = bits_of(run(good));
  for (const int32_t prompt_logprobs : {-1, 0}) {
    answers_ = {};
    start({.num_blocks = 200, .step_tokens = 40});
    Request bad = request(100, 8);
    bad.prompt_logprobs = prompt_logprobs;
    bad.media = {image(90, 10, 1)};
    auto rows = *bad.media[0].embeddings;
    rows[rows.size() - 7] = 0x7fc0;
    bad.media[0].embeddings = std::make_shared<const std::vector<uint16_t>>(std::move(rows));
    const Result<RequestId> bad_id = engine_->submit(bad), good_id = engine_->submit(good);
    ASSERT_TRUE(bad_id && good_id);
    ASSERT_TRUE(answers_.wait_for(*engine_, 2));
    EXPECT_EQ(bits_of(answers_[{*good_id, 0}]), alone);
    const Answer& a = answers_[{*bad_id, 0}];
    EXPECT_EQ(a.finish, FinishReason::kError);
    EXPECT_EQ(a.error.code(), StatusCode::kInternal);
    EXPECT_TRUE(a.tokens.empty());
    const bool says_so = a.error.message().find("NaN") != std::string::npos ||
                         a.error.message().find("not a number") != std::string::npos;
    EXPECT_TRUE(says_so) << a.error.message();
    EXPECT_EQ(bits_of(run(good)), alone);
  }
}

// The same ids with other pixels are another prompt.
TEST_F(ModelFeatures, AnotherImageGivesAnotherAnswer) {
  start({.num_blocks = 200});
  Request r = request(100, 8);
  std::fill_n(r.prompt.begin() + 20, 50, 9);
  r.media = {image(20, 50, 1)};
  const std::vector<uint32_t> first = bits_of(run(r));
  r.media = {image(20, 50, 2)};
  EXPECT_NE(bits_of(run(r)), first);
  r.media[0] = image(20, 50, 1);
  EXPECT_EQ(bits_of(run(r)), first);
  r.media.clear();
  EXPECT_NE(bits_of(run(r)), first);
}

}  // namespace
}  // namespace fathom::engine
