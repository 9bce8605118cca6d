// What cannot be chosen: allowed ids, bad words, ids that would end the answer too early.

#include <algorithm>
#include <random>

#include "sampler/noise.h"
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

TEST(RowDraw, HasTheParametersOfTheRequest) {
  SamplingParams params;
  params.temperature = 0.5f;
  params.top_p = 0.3f;
  params.top_k = 7;
  params.min_p = 0.1f;
  params.allowed_ids = {3, 4};
  params.bad_words = {{3}};
  const kernels::RowDraw draw = row_draw(params, 1, 2);
  EXPECT_EQ(draw.inv_temperature, 2);
  EXPECT_EQ(draw.top_k, 7);
  EXPECT_EQ(draw.top_p, double{0.3f});
  EXPECT_EQ(kernels::noise_bits(draw.key, draw.inner_key, 5), noise_bits(1, 2, Purpose::kToken, 5));
  EXPECT_FALSE(has_edits(params));
  std::vector<SamplingParams> others(4, params);
  others[0].repetition_penalty = 1.1f;
  others[1].presence_penalty = 0.5f;
  others[2].frequency_penalty = 0.5f;
  others[3].logit_bias = {{3, 1.0f}};
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_TRUE(has_edits(others[i])) << i;
    EXPECT_EQ(edits_depend_on_output(others[i]), i < 3) << i;
  }
  params.temperature = 0;
  EXPECT_EQ(row_draw(params, 1, 2).inv_temperature, 0);
  EXPECT_FALSE(row_draw(params, 1, 2).filters()) << "greedy choice has no use for filters";
}

// Against the formulas as they are written (vLLM's apply_all_penalties), one id at a time.
TEST(RowDraw, EditsAreBiasAndPenaltiesOfTheIdsThatCount) {
  constexpr int32_t kVocab = 300;
  Sampler sampler(kVocab);
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  for (int round = 0; round < 100; ++round) {
    SamplingParams params;
    if (round % 2 == 0) params.repetition_penalty = 1.3f;
    if (round % 3 == 0) params.presence_penalty = 0.7f;
    if (round % 5 < 2) params.frequency_penalty = -0.3f;
    if (round % 4 != 1) params.logit_bias = {{299, 4.5f}, {7, -3.25f}, {31, 100.0f}, {7, 0.1f}};
    std::vector<int32_t> prompt, output;
    for (int i = 0; i < 40; ++i) prompt.push_back(static_cast<int32_t>(random() % 310) - 5);
    for (int i = 0; i < 40; ++i) output.push_back(static_cast<int32_t>(random() % 50));
    const History history{prompt, output};
    std::vector<uint32_t> edited(static_cast<size_t>(kernels::mask_words(kVocab)), ~0u);
    std::vector<kernels::LogitEdit> edits;
    sampler.add_edits(params, history, edited, edits);
    EXPECT_LE(std::ssize(edits), most_edits(params, history, kVocab));
    EXPECT_TRUE(std::is_sorted(edits.begin(), edits.end(),
                               [](const auto& a, const auto& b) { return a.id < b.id; }));
    std::vector<float> logits(kVocab);
    for (float& x : logits) x = 3 * normal(random);
    logits[7] = -0.0f;
    std::vector<float> got = logits;
    kernels::apply_edits(edits, got);
    size_t num_edited = 0;
    for (int32_t id = 0; id < kVocab; ++id) {
      const auto i = static_cast<size_t>(id);
      const auto count = static_cast<int32_t>(std::count(output.begin(), output.end(), id));
      const bool in_prompt = std::find(prompt.begin(), prompt.end(), id) != prompt.end();
      const bool penalized = has_edits(params) && edits_depend_on_output(params);
      float want = logits[i], bias = 0;
      bool is_edited = false;
      for (const auto& [biased, amount] : params.logit_bias) {
        if (biased == id) bias += amount, is_edited = true;
      }
      if (is_edited) want += bias;
      if (penalized && (in_prompt || count > 0)) {
        is_edited = true;
        want = want > 0 ? want / params.repetition_penalty : want * params.repetition_penalty;
        want -= params.frequency_penalty * static_cast<float>(count);
        if (count > 0) want -= params.presence_penalty;
      }
      EXPECT_EQ(got[i], want) << round << ", id " << id;
      EXPECT_EQ((edited[i / 32] >> (i % 32)) & 1u, is_edited ? 1u : 0u) << round << ", id " << id;
      num_edited += is_edited ? 1 : 0;
    }
    EXPECT_EQ(edits.size(), num_edited) << round;
  }
}

// What a device draws with the mask built beside it is what the sampler draws.
TEST(RowDraw, WithItsMaskIsWhatTheSamplerDraws) {
  constexpr int32_t kVocab = 300;
  Sampler sampler(kVocab);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<std::byte> memory(static_cast<size_t>(kernels::DrawScratch::bytes(kVocab)));
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(kVocab);
    for (float& x : logits) x = 3 * normal(random);
    SamplingParams params;
    params.temperature = round % 4 == 0 ? 0.0f : 1.2f;
    if (round % 3 == 0) params.top_k = 20;
    if (round % 5 == 0) params.top_p = 0.7f;
    if (round % 2 == 0) params.allowed_ids = {1, 31, 32, 33, 64, 250, 299};
    if (round % 7 < 3) params.bad_words = {{32}, {9, 33}, {8, 299}, {1, 2, 3}};
    std::vector<uint32_t> allowed;
    if (round % 6 < 2)
      allowed.assign(static_cast<size_t>(kernels::mask_words(kVocab)), 0xfffffff3u);
    const std::vector<int32_t> output = {5, 9}, forbidden = {64};
    std::vector<uint32_t> mask(static_cast<size_t>(kernels::mask_words(kVocab)));
    ASSERT_TRUE(has_mask(params, allowed, forbidden));
    build_mask(params, output, allowed, forbidden, mask);
    std::vector<float> masked = logits;
    kernels::apply_token_mask(mask, masked);
    const auto want = sampler.sample(logits, params, 17, round, {{}, output}, allowed, forbidden);
    ASSERT_TRUE(want.has_value()) << want.error().to_string();
    EXPECT_EQ(kernels::choose_token(masked, row_draw(params, 17, round),
                                    kernels::DrawScratch(memory.data(), kVocab)),
              want->id)
        << round;
  }
}

}  // namespace
}  // namespace fathom::sampler
