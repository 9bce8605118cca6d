#include "sampler/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "sampler/noise.h"
#include "sampler/sampler_fixture.h"

namespace fathom::sampler {
namespace {

// The filters as their definition says, by a full sort in double: probabilities by id, 0 if
// filtered out.
std::vector<double> filtered_probabilities(const std::vector<float>& logits,
                                           const SamplingParams& params) {
  const double best = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p(logits.size());
  for (size_t i = 0; i < p.size(); ++i) {
    p[i] = std::exp((double{logits[i]} - best) / double{params.temperature});
  }
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  for (double& weight : p) {
    if (weight < double{params.min_p}) weight = 0;
  }
  if (params.top_k > 0) {
    for (size_t i = static_cast<size_t>(params.top_k); i < order.size(); ++i) p[order[i]] = 0;
  }
  if (params.top_p < 1) {
    const double total = std::accumulate(p.begin(), p.end(), 0.0);
    double before = 0;
    for (const size_t id : order) {
      const double weight = p[id];
      if (before >= double{params.top_p} * total) p[id] = 0;
      before += weight;
    }
  }
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& weight : p) weight /= total;
  return p;
}

// Pearson's statistic of `count` draws, one a position, against the expected probabilities.
double chi_square(const std::vector<float>& logits, const SamplingParams& params, int count) {
  Sampler sampler(static_cast<int32_t>(logits.size()));
  std::vector<double> seen(logits.size());
  for (int position = 0; position < count; ++position) {
    ++seen[static_cast<size_t>(draw_one(sampler, logits, params, 42, position))];
  }
  const std::vector<double> expected = filtered_probabilities(logits, params);
  double statistic = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (expected[i] == 0) {
      EXPECT_EQ(seen[i], 0) << "token " << i << " was filtered out";
      continue;
    }
    const double mean = expected[i] * count;
    statistic += (seen[i] - mean) * (seen[i] - mean) / mean;
  }
  return statistic;
}

const std::vector<float> kToy = {0.5f, 2.0f, -1.0f, 1.0f, 0.0f, 1.5f, -0.5f, 0.25f};

TEST(Sampler, DrawsFollowTheSoftmax) {
  // 7 degrees of freedom: 24.3 is exceeded once in 1,000 runs, and the noise is fixed.
  EXPECT_LT(chi_square(kToy, SamplingParams{}, 100000), 24.3);
}

TEST(Sampler, DrawsFollowTheTemperature) {
  SamplingParams params;
  params.temperature = 0.6f;
  EXPECT_LT(chi_square(kToy, params, 100000), 24.3);
  params.temperature = 2.5f;
  EXPECT_LT(chi_square(kToy, params, 100000), 24.3);
}

TEST(Sampler, DrawsFollowTheFilteredDistribution) {
  SamplingParams params;
  params.top_k = 4;
  EXPECT_LT(chi_square(kToy, params, 100000), 16.3);  // 3 degrees of freedom
  params.top_p = 0.8f;
  params.min_p = 0.1f;
  EXPECT_LT(chi_square(kToy, params, 100000), 16.3);
}

// The shortcuts (bounds before logarithms, buckets instead of sorting) must not change a single
// draw.
TEST(Sampler, EqualsTheFullComputationForRandomLogitsAndFilters) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  Sampler sampler(777);
  for (int round = 0; round < 400; ++round) {
    std::vector<float> logits(777);
    const float spread = std::exp(normal(random) * 1.5f);
    for (float& x : logits) x = spread * normal(random);
    if (round % 3 == 0) {  // many ties
      for (float& x : logits) x = std::round(x);
    }
    SamplingParams params;
    params.temperature = std::exp(normal(random));
    if (round % 2 == 0) params.top_k = static_cast<int32_t>(random() % 100);
    if (round % 4 < 2) params.top_p = static_cast<float>(1 + random() % 99) / 100;
    if (round % 5 == 0) params.min_p = static_cast<float>(random() % 100) / 200;

    const std::vector<double> p = filtered_probabilities(logits, params);
    const uint64_t seed = random();
    int32_t expected = -1;
    double best = -1e300;
    for (size_t i = 0; i < p.size(); ++i) {
      if (p[i] == 0) continue;
      const uint64_t bits = noise_bits(seed, round, Purpose::kToken, static_cast<int64_t>(i));
      const double score = double{logits[i]} / double{params.temperature} +
                           -std::log(-std::log1p(-kernels::tail_probability(bits)));
      if (score > best) {
        best = score;
        expected = static_cast<int32_t>(i);
      }
    }
    EXPECT_EQ(draw_one(sampler, logits, params, seed, round), expected) << "round " << round;
  }
}

TEST(Sampler, GreedyTakesTheLowestIdOfEqualLogits) {
  Sampler sampler(100);
  std::vector<float> logits(100, -3.0f);
  logits[41] = logits[42] = logits[99] = 5;
  EXPECT_EQ(draw_one(sampler, logits, greedy(), 1, 1), 41);
  std::fill(logits.begin(), logits.end(), 0.0f);
  EXPECT_EQ(draw_one(sampler, logits, greedy(), 1, 1), 0);
  logits[0] = -0.0f;  // equal to +0
  EXPECT_EQ(draw_one(sampler, logits, greedy(), 1, 1), 0);
}

TEST(Sampler, TopKKeepsTheLowestIdsOfEqualLogits) {
  Sampler sampler(50);
  const std::vector<float> logits(50, 1.25f);
  SamplingParams params;
  params.top_k = 3;
  std::vector<int> seen(50);
  for (int position = 0; position < 500; ++position) {
    ++seen[static_cast<size_t>(draw_one(sampler, logits, params, 3, position))];
  }
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i] > 0, i < 3) << i;
}

TEST(Sampler, TopPKeepsTokensWhileTheMassBeforeThemIsBelowP) {
  // Probabilities 1/2, 1/4, 1/4 exactly.
  const std::vector<float> logits = {0, std::log(2.0f), 0};
  Sampler sampler(3);
  const auto kept = [&](float top_p) {
    SamplingParams params;
    params.top_p = top_p;
    std::vector<bool> seen(3);
    for (int position = 0; position < 300; ++position) {
      seen[static_cast<size_t>(draw_one(sampler, logits, params, 9, position))] = true;
    }
    return seen;
  };
  EXPECT_EQ(kept(1e-30f), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(kept(0.49f), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(kept(0.51f), (std::vector<bool>{true, true, false}));
  EXPECT_EQ(kept(0.74f), (std::vector<bool>{true, true, false}));
  EXPECT_EQ(kept(0.76f), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(kept(1.0f), (std::vector<bool>{true, true, true}));
}

TEST(Sampler, MinPOneLeavesOnlyTheBestLogits) {
  Sampler sampler(4);
  const std::vector<float> logits = {1, 3, 2.9f, 3};
  SamplingParams params;
  params.min_p = 1;
  params.temperature = 50;
  for (int position = 0; position < 200; ++position) {
    EXPECT_EQ(draw_one(sampler, logits, params, 9, position) % 2, 1);
  }
}

TEST(Sampler, ADrawDependsOnNothingButItsAddress) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> rows(20, std::vector<float>(300));
  for (auto& row : rows) {
    for (float& x : row) x = normal(random);
  }
  SamplingParams params;
  params.top_p = 0.9f;
  Sampler first(300);
  std::vector<int32_t> forward;
  for (size_t i = 0; i < rows.size(); ++i) {
    forward.push_back(draw_one(first, rows[i], params, 5, static_cast<int64_t>(i)));
  }
  // Another sampler, in another order, with other work in between.
  Sampler second(300);
  for (size_t i = rows.size(); i-- > 0;) {
    SamplingParams other;
    other.presence_penalty = 1;
    const std::vector<int32_t> output = {1, 2, 3};
    draw_one(second, rows[0], other, 6, 0, History{{}, output});
    EXPECT_EQ(draw_one(second, rows[i], params, 5, static_cast<int64_t>(i)), forward[i]) << i;
  }
}

TEST(Sampler, SeedsAndPositionsGiveDifferentDraws) {
  const std::vector<float> logits(1000, 0.0f);
  Sampler sampler(1000);
  int same = 0;
  for (int position = 0; position < 1000; ++position) {
    const int32_t a = draw_one(sampler, logits, SamplingParams{}, 1, position);
    const int32_t b = draw_one(sampler, logits, SamplingParams{}, 2, position);
    const int32_t c = draw_one(sampler, logits, SamplingParams{}, 1, position + 1);
    same += (a == b ? 1 : 0) + (a == c ? 1 : 0);
  }
  EXPECT_LT(same, 12);  // 2 expected
}

TEST(Noise, ValuesAreFixedForEver) {
  // Computed by a Python program of the same definition; a change here changes every seeded answer.
  EXPECT_EQ(noise_bits(0, 0, Purpose::kToken, 0), 16306190048742086738u);
  EXPECT_EQ(noise_bits(1234, 77, Purpose::kToken, 129279), 16542036309470602936u);
  EXPECT_EQ(noise_bits(~uint64_t{0}, -1, Purpose::kDraftResidual, int64_t{1} << 40),
            8091447497631874650u);
}

TEST(Noise, EveryPartOfTheAddressChangesHalfOfTheBits) {
  int flipped[4] = {};
  for (int i = 0; i < 1000; ++i) {
    const uint64_t base = noise_bits(7, i, Purpose::kToken, 5);
    flipped[0] += std::popcount(base ^ noise_bits(8, i, Purpose::kToken, 5));
    flipped[1] += std::popcount(base ^ noise_bits(7, i + 1, Purpose::kToken, 5));
    flipped[2] += std::popcount(base ^ noise_bits(7, i, Purpose::kDraftAccept, 5));
    flipped[3] += std::popcount(base ^ noise_bits(7, i, Purpose::kToken, 6));
  }
  for (const int count : flipped) EXPECT_NEAR(count, 32000, 500);  // sigma 126
}

}  // namespace
}  // namespace fathom::sampler
