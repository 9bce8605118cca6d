#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "scheduler/draft_machines.h"

namespace fathom::scheduler {
namespace {

// Bound by weights that all rows share, and by each row's own work, as on a CPU's caches.
constexpr Machine kShared = {0.010, 0.0001, 0.0010, 0.00002};
constexpr Machine kByRow = {0.0005, 0.00075, 0.0025, 0.0001};
constexpr Machine kBetween = {0.004, 0.0010, 0.0008, 0.0001};

TEST(DraftSizing, ChecksAllWhereRowsCostNothing) {
  DraftSizing sizing({.costs = kShared.costs()});
  const std::vector<DraftOffer> offers(2, offer(5, 0.9f));
  const DraftSize size = sizing.choose({.offers = offers, .num_decodes = 2});
  EXPECT_EQ(size.capacity, 10);
  EXPECT_TRUE(size.makes_next);
}

TEST(DraftSizing, LeavesOutTheUnlikelyWhereRowsCost) {
  DraftSizing sizing({.costs = kBetween.costs()});
  DraftOffer o = offer(5, 0.95f);
  o.confidence[2] = 0.05f;
  const DraftSize size = sizing.choose({.offers = std::vector{o}, .num_decodes = 1});
  EXPECT_EQ(size.capacity, 2);
  EXPECT_TRUE(size.makes_next);
}

TEST(DraftSizing, DoesNotTrimForAGainThatIsLost) {
  // The last draft brings 0.03 tokens for 1 % more time: nobody can tell.
  DraftSizing sizing({.costs = kShared.costs()});
  DraftOffer o = offer(5, 0.9f);
  o.confidence[4] = 0.001f;
  EXPECT_EQ(sizing.choose({.offers = std::vector{o}, .num_decodes = 1}).capacity, 5);
}

TEST(DraftSizing, DraftsNothingWhereNothingCanPay) {
  DraftSizing sizing({.costs = kByRow.costs()});
  const std::vector<DraftOffer> offers = {offer(5, 0.6f)};
  for (int i = 0; i < 5000; ++i) {
    const DraftSize size = sizing.choose({.offers = offers, .num_decodes = 1});
    EXPECT_FALSE(size.makes_next) << i;
    EXPECT_LE(size.capacity, i == 0 ? 5 : 0);
  }
}

// 256 sequences on an H200 with 40 layers (bench/results): a draft of all that are nearly sure to
// be right would bring 0.3 %, which no estimate is worth.
TEST(DraftSizing, DraftsNothingForAGainWithinTheErrorOfEstimates) {
  const Machine h200 = {0.0224, 0.000173, 0.0022, 0.000064};
  for (const float confidence : {0.6f, 0.95f}) {
    DraftSizing sizing({.costs = h200.costs()});
    const std::vector<DraftOffer> offers(256, offer(5, confidence));
    for (const DraftOffer& o : offers) sizing.add_offer(o);
    const DraftSize size = sizing.choose({.offers = offers, .num_decodes = 256, .room = 256});
    EXPECT_FALSE(size.makes_next) << confidence;
  }
}

// The release's 40 layers on two cores (bench/results, drafts on the CPU): every row brings its own
// experts, and the round its head.
TEST(DraftSizing, AtReleaseWidthsChecksOneOrTwoOrNoneAsTheyPay) {
  StepCosts costs;
  const double seconds[] = {1.28, 1.93, 2.84, 3.21, 4.01, 4.72};
  for (int64_t rows = 1; rows <= 6; ++rows) costs.decodes.push_back({rows, seconds[rows - 1]});
  costs.drafts = {{1, 0.48}};
  const auto choose = [&](std::vector<float> confidence, double round_s) {
    costs.drafts[0].seconds = round_s;
    DraftSizing sizing({.costs = costs});
    DraftOffer o{.num = 5};
    std::copy(confidence.begin(), confidence.end(), o.confidence.begin());
    for (int i = 0; i < 200; ++i) sizing.add_offer(o);
    return sizing.choose({.offers = std::vector{o}, .num_decodes = 1});
  };
  // With the round as it is on two cores hardly anything pays; one of a tenth shows the rows.
  EXPECT_FALSE(choose({0.8f, 0.7f, 0.6f, 0.5f, 0.4f}, 0.48).makes_next);
  EXPECT_FALSE(choose({0.3f, 0.3f, 0.3f, 0.3f, 0.3f}, 0.048).makes_next);
  const DraftSize one = choose({0.95f, 0.2f, 0.2f, 0.2f, 0.2f}, 0.048);
  EXPECT_TRUE(one.makes_next);
  EXPECT_EQ(one.capacity, 1);
  // The third row is dear, so two are worth it only if a third one is nearly sure as well.
  const DraftSize all = choose({1, 1, 1, 1, 1}, 0.048);
  EXPECT_TRUE(all.makes_next);
  EXPECT_EQ(all.capacity, 5);
  costs.decodes[2].seconds = 2.45;
  costs.decodes[3].seconds = 3.4;
  costs.decodes[4].seconds = 4.4;
  costs.decodes[5].seconds = 5.4;
  const DraftSize two = choose({0.97f, 0.95f, 0.3f, 0.3f, 0.3f}, 0.048);
  EXPECT_TRUE(two.makes_next);
  EXPECT_EQ(two.capacity, 2);
}

TEST(DraftSizing, ConfidenceThatIsTooHighIsCorrected) {
  DraftSizing sizing({.costs = kBetween.costs()});
  const std::vector<DraftOffer> offers = {offer(3, 0.9f)};
  EXPECT_TRUE(sizing.choose({.offers = offers, .num_decodes = 1}).makes_next);
  for (int i = 0; i < 100; ++i) {
    sizing.add_offer(offers[0]);
    sizing.add_outcome(offers[0], 3, 0);
  }
  EXPECT_FALSE(sizing.choose({.offers = offers, .num_decodes = 1}).makes_next);
}

// After a long wait beside prompts the windows lack rows until as many are computed: what becomes
// of drafts meanwhile says nothing of those to come.
TEST(DraftSizing, LearnsNothingOfDraftsWhoseWindowLacksRows) {
  DraftSizing sizing({.costs = kBetween.costs()});
  DraftOffer offered = offer(3, 0.9f);
  const auto see = [&](int32_t num_accepted) {
    for (int i = 0; i < 100; ++i) {
      sizing.add_offer(offered);
      sizing.add_outcome(offered, 3, num_accepted);
    }
    return sizing.choose({.offers = std::vector{offered}, .num_decodes = 1}).makes_next;
  };
  EXPECT_TRUE(see(2));
  const double before = sizing.correction();
  offered.has_whole_window = false;
  EXPECT_TRUE(see(0));
  EXPECT_EQ(sizing.correction(), before);
  offered.has_whole_window = true;
  see(0);
  EXPECT_FALSE(see(0));
  EXPECT_LT(sizing.correction(), before / 2);
}

// Short answers behind hits that restore no windows: there are no other drafts to learn from.
TEST(DraftSizing, LearnsOfDraftsWhoseWindowsNeverAreWhole) {
  DraftSizing sizing({.costs = kBetween.costs()});
  DraftOffer offered = offer(3, 0.9f);
  offered.has_whole_window = false;
  int rounds = 0;
  for (int i = 0; i < 1000; ++i) {
    const DraftSize size = sizing.choose({.offers = std::vector{offered}, .num_decodes = 1});
    rounds += size.makes_next ? 1 : 0;
    if (size.makes_next) sizing.add_offer(offered);
    if (size.capacity > 0) sizing.add_outcome(offered, 3, 0);
  }
  EXPECT_LT(rounds, 40);
}

TEST(DraftSizing, FixedChecksAllAndAlwaysDrafts) {
  DraftSizing sizing({.fixed = true, .costs = kByRow.costs()});
  const std::vector<DraftOffer> offers = {offer(5, 0.01f)};
  const DraftSize size = sizing.choose({.offers = offers, .num_decodes = 1});
  EXPECT_EQ(size.capacity, -1);
  EXPECT_TRUE(size.makes_next);
}

// Seconds a token of `batch` sequences, relative to no drafts, as an asynchronous engine would see:
// a step is sized before the confidences of its drafts are known.
double relative_time(const Machine& machine, bool is_measured, int32_t batch, double acceptance,
                     uint64_t seed, int num_steps = 2000) {
  DraftSizing sizing({.costs = is_measured ? machine.costs() : StepCosts()});
  std::mt19937_64 rng(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  const auto n = static_cast<size_t>(batch);
  std::vector<DraftOffer> known(n), made(n), next(n);
  DraftChooser chooser;
  double seconds = 0, tokens = 0;
  for (int step = 0; step < num_steps; ++step) {
    std::vector<DraftOffer> offers = known;
    for (DraftOffer& o : offers) {
      for (int32_t i = o.num; i < 5; ++i) {
        o.confidence[static_cast<size_t>(i)] = sizing.usual_confidence(i);
      }
      o.num = 5;
    }
    const DraftSize size = sizing.choose({.offers = offers, .num_decodes = batch});
    std::vector<int32_t> chosen(n);
    chooser.choose(made, size.capacity, chosen);
    double rows = batch;
    for (size_t i = 0; i < n; ++i) {
      rows += chosen[i];
      // Confidence is right on average.
      int32_t accepted = 0;
      while (accepted < chosen[i] &&
             uniform(rng) < made[i].confidence[static_cast<size_t>(accepted)]) {
        ++accepted;
      }
      tokens += 1 + accepted;
      if (chosen[i] > 0) sizing.add_outcome(made[i], chosen[i], accepted);
      next[i].num = size.makes_next ? 5 : 0;
      for (float& c : next[i].confidence) {
        c = std::min(1.0f, 2 * static_cast<float>(acceptance) * uniform(rng));
      }
    }
    if (made[0].num > 0) known = made;
    if (size.makes_next) {
      for (const DraftOffer& o : next) sizing.add_offer(o);
    }
    made = next;
    const double makers = size.makes_next ? batch : 0;
    const double noise = 0.97 + 0.06 * static_cast<double>(uniform(rng));
    const double step_s = machine.step(rows) * noise, draft_s = machine.drafting(makers) * noise;
    sizing.add_step({.num_rows = static_cast<int64_t>(rows),
                     .num_makers = static_cast<int64_t>(makers),
                     .seconds = step_s,
                     .draft_seconds = draft_s});
    seconds += step_s + draft_s;
  }
  return seconds / tokens / (machine.step(batch) / batch);
}

TEST(DraftSizing, IsNeverSlowerThanNoDraftsAndFasterWhereItCan) {
  double slowest = 0;
  for (const bool is_measured : {true, false}) {
    for (const Machine& machine : {kShared, kByRow, kBetween}) {
      for (const int32_t batch : {1, 2, 4, 8, 16, 32}) {
        for (const double acceptance : {0.05, 0.2, 0.4, 0.48}) {
          const double time = relative_time(machine, is_measured, batch, acceptance, 1);
          EXPECT_LE(time, 1.02) << is_measured << ' ' << machine.per_row << ' ' << batch << ' '
                                << acceptance;
          slowest = std::max(slowest, time);
        }
      }
    }
    // Weights that all rows share: nearly as many times faster as tokens come, 1 / 1.8.
    EXPECT_LE(relative_time(kShared, is_measured, 1, 0.48, 2), 0.66);
    EXPECT_LE(relative_time(kShared, is_measured, 8, 0.48, 2), 0.72);
  }
  std::printf("the slowest took %.3f of the time without drafts\n", slowest);
}

TEST(DraftSizing, LearnsForLittleWhatDoesNotPay) {
  double slowest = 0;
  for (const int32_t batch : {1, 2, 4, 8, 16, 32}) {
    const double time = relative_time(kByRow, false, batch, 0.2, 3, 200);
    EXPECT_LE(time, batch < 4 ? 1.06 : 1.025) << batch;
    slowest = std::max(slowest, time);
  }
  std::printf("the slowest took %.3f of the time without drafts\n", slowest);
}

// What is guessed of drafts before any was made would not pay here; what they are does.
TEST(DraftSizing, LooksAtSomeDraftsBeforeItGivesThemUp) {
  constexpr Machine kDear = {0.004, 0.0035, 0.004, 0};
  for (const auto& [confidence, pays] : {std::pair{0.97f, true}, {0.6f, false}}) {
    DraftSizing sizing({.costs = kDear.costs()});
    const std::vector<DraftOffer> offers = {offer(5, confidence)};
    int rounds = 0;
    for (int i = 0; i < 40; ++i) {
      if (!sizing.choose({.offers = offers, .num_decodes = 1}).makes_next) continue;
      ++rounds;
      sizing.add_offer(offers[0]);
    }
    EXPECT_EQ(rounds, pays ? 40 : 4) << confidence;
  }
}

// A step's share of the draft module is saved too, but for a window's worth before each probe.
TEST(DraftSizing, KeepsRowsOnlyForDraftsThatWillBeMade) {
  DraftSizing never({.window = 100, .costs = kByRow.costs()});
  const std::vector<DraftOffer> offers(8, offer(5, 0.5f));
  for (int i = 0; i < 3000; ++i) {
    EXPECT_FALSE(never.choose({.offers = offers, .num_decodes = 8}).keeps_rows) << i;
  }
  EXPECT_FALSE(never.choose({.offers = {}}).keeps_rows);

  DraftSizing rarely({.window = 100, .costs = kBetween.costs()});
  const std::vector<DraftOffer> bad = {offer(5, 0.1f)};
  for (int i = 0; i < 50; ++i) rarely.add_offer(bad[0]);
  int kept = 0, rounds = 0;
  for (int i = 0; i < 20000; ++i) {
    const DraftSize size = rarely.choose({.offers = bad, .num_decodes = 1});
    kept = size.keeps_rows ? kept + 1 : 0;
    if (!size.makes_next) continue;
    ++rounds;
    EXPECT_GE(kept, std::min(i, 100)) << i;
  }
  EXPECT_GE(rounds, 15);
  EXPECT_LE(rounds, 30);
}

// Confidences that are no numbers, all sure and all wrong, leave numbers that can be learned on.
TEST(DraftSizing, ForgetsConfidencesThatWereNoNumbers) {
  DraftSizing sizing({.costs = kShared.costs()});
  DraftOffer none = offer(5, std::numeric_limits<float>::quiet_NaN());
  for (int i = 0; i < 20; ++i) {
    sizing.add_offer(none);
    sizing.add_outcome(none, 5, 5);
    sizing.add_offer(offer(5, 1));
    sizing.add_outcome(offer(5, 1), 5, 5);
  }
  const DraftOffer good = offer(5, 0.9f);
  for (int i = 0; i < 100; ++i) {
    sizing.add_offer(good);
    sizing.add_outcome(good, 5, 5);
  }
  EXPECT_NEAR(sizing.usual_confidence(0), 0.9f, 0.1f);
  EXPECT_EQ(sizing.choose({.offers = std::vector{good}, .num_decodes = 1}).capacity, 5);
}

// 256 sequences of two kinds, whose drafts pay together: it does not matter who comes last.
TEST(DraftSizing, TheOrderOfSequencesDoesNotDecide) {
  for (const bool good_first : {true, false}) {
    DraftSizing sizing({.costs = Machine{0.004, 0.000001, 0.0005, 0}.costs()});
    std::mt19937_64 rng(1);
    std::uniform_real_distribution<double> uniform(0, 1);
    const std::vector<DraftOffer> offers(256, offer(5, 0.8f));
    for (int step = 0; step < 300; ++step) {
      for (size_t i = 0; i < offers.size(); ++i) {
        const double chance = (i < 128) == good_first ? 0.8 : 0.3;
        int32_t accepted = 0;
        while (accepted < 5 && uniform(rng) < chance) ++accepted;
        sizing.add_offer(offers[i]);
        sizing.add_outcome(offers[i], 5, accepted);
      }
      const DraftSize size = sizing.choose({.offers = offers, .num_decodes = 256});
      EXPECT_TRUE(size.makes_next) << step;
    }
    // As sure as they say, times 0.58.
    EXPECT_NEAR(sizing.correction(), 0.58, 0.06) << good_first;
  }
}

}  // namespace
}  // namespace fathom::scheduler
