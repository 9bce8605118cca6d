#include "scheduler/cost_model.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(CostModel, ADifferenceOfSizesIsNotForgottenWhileOneSizeRuns) {
  CostModel model;
  for (int i = 0; i < 8; ++i) model.add(i % 2 == 0 ? 8 : 10, 0.001 * (i % 2 == 0 ? 8 : 10) + 0.004);
  // Meanwhile the machine becomes twice as slow.
  for (int i = 0; i < 5000; ++i) model.add(8, 0.012 * std::min(2.0, 1 + 0.02 * i));
  ASSERT_TRUE(model.knows_sizes());
  EXPECT_NEAR(*model.seconds(8), 0.024, 1e-4);
  EXPECT_NEAR(*model.seconds(16), 0.024 + 8 * 0.001, 0.001);  // the slope as it was seen
  EXPECT_NEAR(static_cast<double>(*model.max_rows(0.032)), 16, 1);
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

// Rows that cost nothing: by a line alone all steps would be too slow or none, as noise has it.
TEST(CostModel, RowsOfAFlatCostChangeByDegrees) {
  CostModel model;
  for (int i = 0; i < 200; ++i) {
    model.add(i % 2 == 0 ? 80 : 120, i % 3 == 0 ? 0.0204 : 0.0198);
    if (i < 20) continue;
    ASSERT_TRUE(model.knows_sizes());
    EXPECT_NEAR(static_cast<double>(*model.max_rows(0.020)), 100, 25) << i;
  }
  const CostModel& flat = model;
  int64_t before = *flat.max_rows(0.010);
  for (double target = 0.010; target < 0.040; target += 0.0002) {
    const int64_t rows = *flat.max_rows(target);
    EXPECT_GE(rows, before) << target;
    EXPECT_LE(rows, before + 10) << target;
    before = rows;
  }
}

// Steps as large as that come to the size that takes the time, however flat the line.
TEST(CostModel, RowsOfANearlyFlatCostComeToTheTarget) {
  CostModel model;
  const auto cost = [](int64_t rows) { return 0.018 + 0.00002 * static_cast<double>(rows); };
  for (int i = 0; i < 8; ++i) model.add(8 + i, cost(8 + i));
  for (int i = 0; i < 200; ++i) {
    const int64_t rows = std::max<int64_t>(1, *model.max_rows(0.025));
    model.add(rows, cost(rows));
  }
  EXPECT_NEAR(static_cast<double>(*model.max_rows(0.025)), 350, 4);
}

TEST(CostModel, ATableIsKnownBeforeAnyStep) {
  const CostModel model({{1, 0.010}, {4, 0.010}, {64, 0.030}, {512, 0.200}});
  EXPECT_NEAR(*model.seconds(1), 0.010, 1e-12);
  EXPECT_NEAR(*model.seconds(34), 0.020, 1e-12);
  EXPECT_NEAR(*model.seconds(1024), 0.200 + 512 * 0.170 / 448, 1e-12);
  EXPECT_EQ(*model.max_rows(0.009), 0);
  EXPECT_EQ(*model.max_rows(0.0201), 34);
  EXPECT_EQ(*model.max_rows(0.2001 + 512 * 0.170 / 448), 1024);
  // A last stretch that is flatter than the whole is noise.
  const CostModel flat({{1, 0.010}, {5, 0.018}, {6, 0.018}});
  EXPECT_NEAR(*flat.seconds(16), 0.018 + 10 * 0.0016, 1e-12);
  const CostModel level({{1, 0.010}, {2, 0.010}});
  EXPECT_NEAR(*level.seconds(8), 0.040, 1e-12);
  EXPECT_EQ(*level.max_rows(0.0401), 8);
  const CostModel one({{4, 0.010}});
  EXPECT_NEAR(*one.seconds(8), 0.020, 1e-12);
  EXPECT_EQ(*one.max_rows(0.0401), 16);
}

TEST(CostModel, ATableFollowsTheStepsThatRun) {
  CostModel model({{1, 0.010}, {100, 0.020}});
  for (int i = 0; i < 300; ++i) model.add(100, 0.060);  // three times as slow
  EXPECT_NEAR(*model.seconds(100), 0.060, 0.001);
  EXPECT_NEAR(*model.seconds(1), 0.030, 0.001);
  EXPECT_EQ(*model.max_rows(0.029), 0);
}

TEST(CostModel, MoreRowsNeverCostLess) {
  CostModel model({{1, 0.010}, {2, 0.010}, {8, 0.011}, {9, 0.5}, {500, 0.6}});
  for (int i = 0; i < 50; ++i) model.add(1 + i * 7 % 40, 0.01 * (1 + i % 5));
  double before = 0;
  for (int64_t rows = 1; rows < 2000; ++rows) {
    EXPECT_GE(*model.seconds(rows), before) << rows;
    before = *model.seconds(rows);
  }
  int64_t rows_before = 0;
  for (double target = 0.001; target < 3; target += 0.01) {
    const int64_t rows = *model.max_rows(target);
    EXPECT_GE(rows, rows_before);
    if (rows > 0) {
      EXPECT_LE(*model.seconds(rows), target * 1.0001);
    }
    rows_before = rows;
  }
}

}  // namespace
}  // namespace fathom::scheduler
