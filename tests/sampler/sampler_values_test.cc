#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "sampler/sampler.h"
#include "sampler/sampler_fixture.h"

namespace fathom::sampler {
namespace {

TEST(Sampler, TinyTemperaturesAreGreedy) {
  Sampler sampler(5);
  const std::vector<float> logits = {3e38f, -3e38f, 3e38f, 0, 1};
  for (const float temperature : {1e-9f, 1e-45f, 0.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    params.top_p = 0.5f;
    EXPECT_EQ(draw_one(sampler, logits, params, 1, 1), 0) << temperature;
  }
  SamplingParams params;
  params.temperature = 1e-5f;
  for (int position = 0; position < 100; ++position) {
    EXPECT_EQ(draw_one(sampler, logits, params, 1, position) % 2, 0);
  }
}

TEST(Sampler, InfiniteNegativeLogitsAreNeverChosen) {
  Sampler sampler(6);
  const std::vector<float> logits = {-kInf, -3e38f, -kInf, -kInf, -3e38f, -kInf};
  for (int filters = 0; filters < 2; ++filters) {
    SamplingParams params;
    params.temperature = 100;
    if (filters == 1) {
      params.top_k = 5;
      params.top_p = 0.9999f;
    }
    for (int position = 0; position < 200; ++position) {
      EXPECT_TRUE(std::isfinite(
          logits[static_cast<size_t>(draw_one(sampler, logits, params, 1, position))]));
    }
  }
}

TEST(Sampler, InfinitePositiveLogitsShareAllOfTheProbability) {
  Sampler sampler(4);
  const std::vector<float> logits = {1, kInf, 100, kInf};
  EXPECT_EQ(draw_one(sampler, logits, greedy(), 1, 1), 1);
  int second = 0;
  for (int position = 0; position < 1000; ++position) {
    const int32_t id = draw_one(sampler, logits, SamplingParams{}, 1, position);
    EXPECT_EQ(id % 2, 1);
    second += id == 3 ? 1 : 0;
  }
  EXPECT_NEAR(second, 500, 60);
  const Sample logprobs = raw_logprobs(logits, 3, 3);
  EXPECT_FLOAT_EQ(logprobs.logprob, std::log(0.5f));
  EXPECT_EQ(logprobs.top[2].id, 2);
  EXPECT_EQ(logprobs.top[2].logprob, -kInf);
}

TEST(Sampler, NothingToChooseIsAnError) {
  Sampler sampler(40);
  const std::vector<float> logits(40, -kInf);
  Result<Sample> result = sampler.sample(logits, greedy(), 1, 1, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message().find("no token can be chosen"), std::string::npos);

  // A bit beyond the vocabulary does not count as a token.
  const std::vector<float> fine(40, 1.0f);
  const std::vector<uint32_t> mask = {0, 0xffffff00u};
  for (const float temperature : {0.0f, 1.0f}) {
    SamplingParams params;
    params.temperature = temperature;
    EXPECT_FALSE(sampler.sample(fine, params, 1, 1, {}, mask).has_value());
  }
}

TEST(Sampler, NanIsAnErrorThatNamesItsToken) {
  for (const size_t at : {size_t{0}, size_t{31}, size_t{39}}) {
    Sampler sampler(40);
    std::vector<float> logits(40, 1.0f);
    logits[at] = kNan;
    Result<Sample> result = sampler.sample(logits, SamplingParams{}, 1, 1, {});
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().message().find("token id " + std::to_string(at) + " is NaN"),
              std::string::npos)
        << result.error().message();
  }
}

TEST(Sampler, WrongSizesAndParametersAreErrors) {
  Sampler sampler(40);
  const std::vector<float> logits(40, 1.0f);
  EXPECT_FALSE(sampler.sample(std::span(logits).first(39), greedy(), 1, 1, {}).has_value());
  const std::vector<uint32_t> mask = {~0u};
  EXPECT_FALSE(sampler.sample(logits, greedy(), 1, 1, {}, mask).has_value());
  SamplingParams params;
  params.logit_bias = {{40, 1.0f}};
  EXPECT_FALSE(sampler.sample(logits, params, 1, 1, {}).has_value());
}

TEST(Sampler, OnlyAllowedTokensAreChosen) {
  Sampler sampler(70);
  std::vector<float> logits(70, 0.0f);
  logits[5] = 50;
  const std::vector<uint32_t> mask = {0, 1u << 8, 1u << 3};  // 40 and 67
  EXPECT_EQ(draw_one(sampler, logits, greedy(), 1, 1, {}, mask), 40);
  int last = 0;
  for (int position = 0; position < 200; ++position) {
    const int32_t id = draw_one(sampler, logits, SamplingParams{}, 1, position, {}, mask);
    EXPECT_TRUE(id == 40 || id == 67) << id;
    last += id == 67 ? 1 : 0;
  }
  EXPECT_GT(last, 50);
}

// The edited logits cannot be read, so each case asks which of two tokens is ahead, from both
// sides.
TEST(Sampler, PenaltiesEqualTheHandComputedValues) {
  Sampler sampler(4);
  const std::vector<int32_t> prompt = {0};
  const std::vector<int32_t> output = {1, 1, 1, 2};
  SamplingParams params = greedy();
  params.repetition_penalty = 2;
  params.frequency_penalty = 0.5f;
  params.presence_penalty = 0.25f;
  // 0: 8 / 2 = 4 (prompt: repetition only); 1: 8 / 2 - 1.5 - 0.25 = 2.25; 2: -1 * 2 - 0.5 - 0.25 =
  // -2.75.
  const float penalized[] = {4, 2.25f, -2.75f};
  for (size_t token = 0; token < 3; ++token) {
    for (const float delta : {-0.001f, 0.001f}) {
      std::vector<float> logits(4, -1000.0f);
      logits[token] = token == 2 ? -1.0f : 8.0f;
      logits[3] = penalized[token] + delta;
      EXPECT_EQ(draw_one(sampler, logits, params, 1, 1, {prompt, output}),
                delta > 0 ? 3 : static_cast<int32_t>(token));
    }
  }
}

TEST(Sampler, HistoryIdsOutsideTheVocabularyCountForNothing) {
  Sampler sampler(4);
  const std::vector<int32_t> history = {-1, 4, 129264, 2};
  SamplingParams params = greedy();
  params.presence_penalty = 2;
  EXPECT_EQ(draw_one(sampler, {0, 0.5f, 1, 0}, params, 1, 1, {history, history}), 1);
  // And nothing stays behind for the next call.
  EXPECT_EQ(draw_one(sampler, {0, 0.5f, 1, 0}, params, 1, 1), 2);
}

TEST(Sampler, BiasMovesALogitByItsValue) {
  Sampler sampler(4);
  SamplingParams params = greedy();
  params.logit_bias = {{1, 2.5f}, {3, -100.0f}};
  EXPECT_EQ(draw_one(sampler, {2.4f, 0, 0, 50}, params, 1, 1), 1);
  EXPECT_EQ(draw_one(sampler, {2.6f, 0, 0, 50}, params, 1, 1), 0);
}

TEST(Sampler, LogprobsAreThoseOfTheRawDistribution) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> logits(500);
  for (float& x : logits) x = normal(random);
  logits[10] = logits[20] = logits[30] = 15;
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x});

  Sampler sampler(500);
  SamplingParams params;
  params.temperature = 3;
  params.top_k = 7;
  params.logit_bias = {{20, -30.0f}};
  params.logprobs = 5;
  Result<Sample> sample = sampler.sample(logits, params, 11, 4, {});
  ASSERT_TRUE(sample.has_value());
  EXPECT_NEAR(sample->logprob, double{logits[static_cast<size_t>(sample->id)]} - std::log(sum),
              1e-6);
  ASSERT_EQ(sample->top.size(), 5u);
  EXPECT_EQ(sample->top[0].id, 10);
  EXPECT_EQ(sample->top[1].id, 20);
  EXPECT_EQ(sample->top[2].id, 30);
  std::vector<float> sorted = logits;
  std::sort(sorted.rbegin(), sorted.rend());
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(sample->top[i].logprob, double{sorted[i]} - std::log(sum), 1e-6);
  }
}

TEST(Sampler, LogprobsOfDegenerateRowsAreDefined) {
  const std::vector<float> none = {-kInf, -kInf};
  EXPECT_EQ(raw_logprobs(none, 1, 2).logprob, -kInf);
  EXPECT_EQ(raw_logprobs(none, 1, 2).top[0].id, 0);
  const std::vector<float> nan = {1, kNan};
  EXPECT_TRUE(std::isnan(raw_logprobs(nan, 0, 2).logprob));
  const std::vector<float> huge = {3e38f, 3e38f, -3e38f};
  EXPECT_FLOAT_EQ(raw_logprobs(huge, 0, 9).logprob, std::log(0.5f));
  EXPECT_EQ(raw_logprobs(huge, 0, 9).top.size(), 3u);
}

}  // namespace
}  // namespace fathom::sampler
