#include "core/draft_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

namespace fathom {
namespace {

DraftOffer offer(std::initializer_list<float> confidence) {
  DraftOffer o;
  for (const float c : confidence) o.confidence[static_cast<size_t>(o.num++)] = c;
  return o;
}

std::vector<int32_t> choose(std::vector<DraftOffer> offers, int64_t capacity) {
  std::vector<int32_t> chosen(offers.size(), -1);
  DraftChooser chooser;
  chooser.choose(offers, capacity, chosen);
  return chosen;
}

TEST(DraftChoice, TheLikeliestToSurviveGetTheRows) {
  // Survival: 0.9 0.81 0.4; 0.5 0.5; 0.95 0.1.
  const std::vector<DraftOffer> offers = {offer({0.9f, 0.9f, 0.49f}), offer({0.5f, 1.0f}),
                                          offer({0.95f, 0.1f})};
  EXPECT_EQ(choose(offers, 0), (std::vector<int32_t>{0, 0, 0}));
  EXPECT_EQ(choose(offers, 1), (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(choose(offers, 3), (std::vector<int32_t>{2, 0, 1}));
  EXPECT_EQ(choose(offers, 5), (std::vector<int32_t>{2, 2, 1}));
  EXPECT_EQ(choose(offers, 6), (std::vector<int32_t>{3, 2, 1}));
  EXPECT_EQ(choose(offers, 99), (std::vector<int32_t>{3, 2, 2}));
  EXPECT_EQ(choose(offers, -1), (std::vector<int32_t>{3, 2, 2}));
}

TEST(DraftChoice, OfEqualsTheEarlierPositionComesFirstThenTheEarlierOffer) {
  const std::vector<DraftOffer> offers = {offer({1, 1, 1}), offer({1, 1, 1})};
  EXPECT_EQ(choose(offers, 1), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(choose(offers, 2), (std::vector<int32_t>{1, 1}));
  EXPECT_EQ(choose(offers, 3), (std::vector<int32_t>{2, 1}));
}

TEST(DraftChoice, WhatIsNoProbabilityDoesNotSurviveAndNeverBreaksTheOrder) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(choose({offer({nan, 1}), offer({0.1f, 7})}, 2), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(choose({offer({-1, 1})}, 1), (std::vector<int32_t>{1}));
}

// Hundreds are sorted by other means than a few.
TEST(DraftChoice, ManyAreInTheSameOrder) {
  std::mt19937 rng(3);
  for (const bool has_equals : {false, true}) {
    struct Draft {
      float survival;
      int32_t position;
      size_t offer;
    };
    std::vector<DraftOffer> offers(200);
    std::vector<Draft> drafts;
    for (size_t i = 0; i < offers.size(); ++i) {
      offers[i].num = static_cast<int32_t>(rng() % (kMaxDrafts + 1));
      float survival = 1;
      for (int32_t j = 0; j < offers[i].num; ++j) {
        float& c = offers[i].confidence[static_cast<size_t>(j)];
        c = has_equals ? static_cast<float>(rng() % 3) / 2
                       : std::uniform_real_distribution<float>(0, 1)(rng);
        drafts.push_back({survival *= c, j, i});
      }
    }
    std::sort(drafts.begin(), drafts.end(), [](const Draft& a, const Draft& b) {
      return std::tuple(-a.survival, a.position, a.offer) <
             std::tuple(-b.survival, b.position, b.offer);
    });
    DraftChooser chooser;
    const auto ranked = chooser.rank(offers);
    ASSERT_EQ(ranked.size(), drafts.size());
    for (size_t i = 0; i < drafts.size(); ++i) ASSERT_EQ(ranked[i], drafts[i].survival) << i;
    for (const size_t capacity : {size_t{1}, size_t{100}, drafts.size() - 1, drafts.size()}) {
      std::vector<int32_t> expected(offers.size());
      for (size_t i = 0; i < capacity; ++i) ++expected[drafts[i].offer];
      EXPECT_EQ(choose(offers, static_cast<int64_t>(capacity)), expected) << capacity;
    }
  }
}

TEST(DraftChoice, RankingAndChoiceAgreeAtEveryCapacity) {
  std::mt19937 rng(7);
  DraftChooser chooser;
  for (int round = 0; round < 200; ++round) {
    std::vector<DraftOffer> offers(rng() % 6);
    for (DraftOffer& o : offers) {
      o.num = static_cast<int32_t>(rng() % (kMaxDrafts + 1));
      for (float& c : o.confidence) c = static_cast<float>(rng() % 5) / 4;
    }
    const auto ranked = chooser.rank(offers);
    const std::vector<float> survivals(ranked.begin(), ranked.end());
    for (size_t k = 0; k <= survivals.size(); ++k) {
      const std::vector<int32_t> chosen = choose(offers, static_cast<int64_t>(k));
      double sum = 0;
      for (size_t i = 0; i < offers.size(); ++i) {
        float survival = 1;
        for (int32_t j = 0; j < chosen[i]; ++j) {
          sum += survival *= offers[i].confidence[static_cast<size_t>(j)];
        }
      }
      const auto best =
          std::accumulate(survivals.begin(), survivals.begin() + static_cast<int64_t>(k), 0.0);
      ASSERT_NEAR(sum, best, 1e-5);
      ASSERT_EQ(std::accumulate(chosen.begin(), chosen.end(), size_t{0}), k);
    }
  }
}

}  // namespace
}  // namespace fathom
