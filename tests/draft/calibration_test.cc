#include "draft/calibration.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace fathom::draft {
namespace {

// Drafts whose confidence is that of the chance to be accepted, seen through a temperature.
std::vector<Outcome> make_outcomes(const std::vector<double>& temperatures, int num) {
  std::mt19937_64 rng(3);
  std::uniform_real_distribution<double> uniform(0.02, 0.98);
  std::vector<Outcome> outcomes;
  for (int i = 0; i < num; ++i) {
    Outcome o;
    bool goes_on = true;
    for (const double temperature : temperatures) {
      const double chance = uniform(rng);
      // at_temperature(confidence, temperature) == chance
      o.offer.confidence[static_cast<size_t>(o.offer.num++)] =
          static_cast<float>(at_temperature(chance, 1 / temperature));
      ++o.num_verified;
      goes_on = goes_on && std::uniform_real_distribution<double>(0, 1)(rng) < chance;
      if (goes_on) ++o.num_accepted;
    }
    outcomes.push_back(o);
  }
  return outcomes;
}

TEST(Calibration, FindsTheTemperatureOfEachPosition) {
  const std::vector<double> temperatures = {2.0, 0.5, 1.0};
  const auto fits = fit_temperatures(make_outcomes(temperatures, 20000));
  ASSERT_EQ(fits.size(), 3u);
  for (size_t i = 0; i < fits.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(fits[i].temperature), temperatures[i], 0.12 * temperatures[i])
        << i;
    EXPECT_LT(fits[i].error_after, 0.02) << i;
    EXPECT_EQ(fits[i].num, 20000);
  }
  EXPECT_GT(fits[0].error_before, 0.05);
  EXPECT_LT(fits[0].error_after, fits[0].error_before / 3);
}

TEST(Calibration, WithoutEnoughToGoByItTakesTheTemperatureBefore) {
  std::vector<Outcome> outcomes = make_outcomes({2.0, 2.0}, 3000);
  for (Outcome& o : outcomes) o.num_verified = 1, o.num_accepted = std::min(o.num_accepted, 1);
  const auto fits = fit_temperatures(outcomes);
  ASSERT_EQ(fits.size(), 2u);
  EXPECT_NEAR(static_cast<double>(fits[0].temperature), 2, 0.3);
  EXPECT_EQ(fits[1].temperature, fits[0].temperature);
  EXPECT_EQ(fits[1].num, 0);
  EXPECT_EQ(fit_temperatures(make_outcomes({2.0}, 20))[0].temperature, 1.0f);
  EXPECT_TRUE(fit_temperatures({}).empty());
}

TEST(Calibration, AnAnswerThatEndsSaysNothingOfTheDraftsBehind) {
  Outcome o;
  o.num_verified = 3;
  o.num_accepted = 1;
  o.is_cut = true;
  o.offer.num = 3;
  o.offer.confidence.fill(0.5f);
  const auto fits = fit_temperatures(std::vector<Outcome>(5, o));
  ASSERT_EQ(fits.size(), 3u);
  EXPECT_EQ(fits[0].num, 5);
  EXPECT_EQ(fits[1].num, 0);
}

TEST(Calibration, TemperaturesMoveConfidencesTowardsAHalfAndBack) {
  EXPECT_NEAR(at_temperature(0.9, 1), 0.9, 1e-9);
  EXPECT_LT(at_temperature(0.9, 2), 0.9);
  EXPECT_GT(at_temperature(0.9, 2), 0.5);
  EXPECT_NEAR(at_temperature(at_temperature(0.3, 4), 0.25), 0.3, 1e-9);
  EXPECT_GE(at_temperature(0, 1), 0);
  EXPECT_LE(at_temperature(1, 1), 1);
}

}  // namespace
}  // namespace fathom::draft
