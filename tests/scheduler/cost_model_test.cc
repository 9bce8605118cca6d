#include "scheduler/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fathom::scheduler {
namespace {

TEST(CostModel, KnowsNothingBeforeAStepRan) {
  CostModel model;
  EXPECT_FALSE(model.seconds(10).has_value());
  EXPECT_FALSE(model.max_rows(1.0).has_value());
}

TEST(CostModel, LearnsALine) {
  CostModel model;
  for (int i = 0; i < 50; ++i) model.add(1 + 37 * i % 200, 0.002 + 0.0001 * (1 + 37 * i % 200));
  EXPECT_NEAR(*model.seconds(100), 0.012, 1e-6);
  EXPECT_NEAR(static_cast<double>(*model.max_rows(0.012)), 100, 1);
}

TEST(CostModel, FollowsAMachineThatBecomesSlower) {
  CostModel model;
  for (int i = 0; i < 1000; ++i) model.add(1 + i % 100, 0.001 * (1 + i % 100));
  for (int i = 0; i < 300; ++i) model.add(1 + i % 100, 0.003 * (1 + i % 100));
  EXPECT_NEAR(*model.seconds(50), 0.15, 0.002);
}

TEST(CostModel, OneSizeOnlyGivesAProportion) {
  CostModel model;
  for (int i = 0; i < 10; ++i) model.add(8, 0.008);
  EXPECT_NEAR(*model.seconds(16), 0.016, 1e-9);
}

TEST(CostModel, IgnoresTimesThatAreNone) {
  CostModel model;
  model.add(8, 0);
  model.add(8, -1);
  model.add(0, 1);
  model.add(8, std::numeric_limits<double>::quiet_NaN());
  model.add(8, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(model.seconds(8).has_value());
}

TEST(CostModel, AFallingLineIsTakenForNoise) {
  CostModel model;
  model.add(10, 0.02);
  model.add(20, 0.01);
  EXPECT_GT(*model.seconds(20), *model.seconds(10));
  EXPECT_GE(*model.max_rows(1e-9), 0);
}

}  // namespace
}  // namespace fathom::scheduler
