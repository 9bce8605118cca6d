// What cannot be chosen: allowed ids, bad words, ids that would end the answer too early.

#include <algorithm>

#include "sampler/sampler_fixture.h"

namespace fathom::sampler {
namespace {

// Logits that fall with the id, so that greedy takes the lowest id that is left.
std::vector<float> falling(int32_t size) {
  std::vector<float> logits;
  for (int32_t i = 0; i < size; ++i) logits.push_back(static_cast<float>(-i));
  return logits;
}

TEST(SamplerMasks, OnlyAllowedIdsAreChosen) {
  Sampler sampler(70);
  SamplingParams params = greedy();
  params.allowed_ids = {69, 40, 64};
  EXPECT_EQ(draw_one(sampler, falling(70), params, 1, 0), 40);
  // Sampled hot, all of them come and nothing else does; noise is the same as without a mask.
  params.temperature = 1000;
  std::vector<int> seen(70);
  for (int position = 0; position < 300; ++position) {
    ++seen[static_cast<size_t>(draw_one(sampler, falling(70), params, 1, position))];
  }
  EXPECT_EQ(seen[40] + seen[64] + seen[69], 300);
  EXPECT_GT(std::min({seen[40], seen[64], seen[69]}), 50);
  // The next call has no trace of it.
  EXPECT_EQ(draw_one(sampler, falling(70), greedy(), 1, 0), 0);
}

TEST(SamplerMasks, ABadWordsLastIdIsMaskedBehindItsBeginningOnly) {
  Sampler sampler(10);
  SamplingParams params = greedy();
  params.bad_words = {{4, 5, 0}, {1}};
  const auto after = [&](const std::vector<int32_t>& output) {
    const std::vector<int32_t> prompt = {4, 5};  // does not count
    return draw_one(sampler, falling(10), params, 1, 0, {prompt, output});
  };
  EXPECT_EQ(after({}), 0);
  EXPECT_EQ(after({5}), 0);
  EXPECT_EQ(after({5, 4}), 0);
  EXPECT_EQ(after({4, 5}), 2);  // 0 completes a word, 1 is one
  EXPECT_EQ(after({9, 4, 5}), 2);
  EXPECT_EQ(after({4, 5, 9}), 0);
}

TEST(SamplerMasks, ForbiddenIdsAreNotChosenHoweverLikely) {
  Sampler sampler(10);
  SamplingParams params = greedy();
  params.logit_bias = {{3, 100.0f}};
  const auto draw = [&](std::vector<int32_t> forbidden) {
    Result<Sample> s = sampler.sample(falling(10), params, 1, 0, {}, {}, forbidden);
    return s ? s->id : -1;
  };
  EXPECT_EQ(draw({}), 3);
  EXPECT_EQ(draw({3}), 0);
  EXPECT_EQ(draw({0, 3, 1}), 2);
}

TEST(SamplerMasks, AllOfThemTogetherMayLeaveNothing) {
  Sampler sampler(40);
  SamplingParams params = greedy();
  params.allowed_ids = {33, 34, 35};
  params.bad_words = {{33}};
  std::vector<uint32_t> grammar = {~0u, 0xfbu};  // not 34
  const std::vector<int32_t> forbidden = {35};
  const Result<Sample> sample = sampler.sample(falling(40), params, 1, 0, {}, grammar, forbidden);
  ASSERT_FALSE(sample.has_value());
  EXPECT_EQ(sample.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(sample.error().message().find("every token is masked"), std::string::npos);
  grammar[1] = ~0u;
  EXPECT_EQ(draw_one(sampler, falling(40), params, 1, 0, {}, grammar), 34);
}

TEST(SamplerMasks, LogprobsStayThoseOfTheRawDistribution) {
  Sampler sampler(10);
  SamplingParams params = greedy();
  params.logprobs = 2;
  const Result<Sample> free = sampler.sample(falling(10), params, 1, 0, {});
  params.allowed_ids = {5};
  const Result<Sample> masked = sampler.sample(falling(10), params, 1, 0, {});
  ASSERT_TRUE(free && masked);
  EXPECT_EQ(masked->id, 5);
  EXPECT_FLOAT_EQ(masked->logprob, free->logprob - 5);
  EXPECT_EQ(masked->top[0].id, 0);
}

TEST(SamplerMasks, TheLikeliestIsTakenOnlyIfNothingChangesTheLogits) {
  SamplingParams greedy;
  greedy.temperature = 0;
  greedy.top_p = 0.3f;
  EXPECT_TRUE(takes_likeliest(greedy));
  std::vector<SamplingParams> others(8, greedy);
  others[0].temperature = 0.1f;
  others[1].repetition_penalty = 1.1f;
  others[2].presence_penalty = 0.5f;
  others[3].frequency_penalty = 0.5f;
  others[4].logit_bias = {{3, 1.0f}};
  others[5].allowed_ids = {3, 4};
  others[6].bad_words = {{3}};
  others[7].temperature = 1;
  for (size_t i = 0; i < others.size(); ++i) EXPECT_FALSE(takes_likeliest(others[i])) << i;
}

}  // namespace
}  // namespace fathom::sampler
