// The rule that sizes drafts against none and against the best fixed number, over a grid of
// machines, loads and acceptances.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "scheduler/draft_engine.h"

namespace fathom::scheduler {
namespace {

DraftMachine flat() { return {"flat", {{1, 0.0100}, {512, 0.0105}}, {{1, 0.0010}, {256, 0.0015}}}; }

// What fits the caches costs what it computes: about the demo.
DraftMachine linear() {
  return {"linear", {{1, 0.00120}, {512, 0.360}}, {{1, 0.00106}, {256, 0.110}}};
}

// 40 layers of the release's widths on 16 cores: each row brings its own experts, until all of them
// are read.
DraftMachine cpu() {
  return {"cpu",
          {{1, 0.168},
           {2, 0.217},
           {6, 0.407},
           {12, 0.62},
           {24, 0.95},
           {48, 1.5},
           {96, 2.4},
           {192, 4.2},
           {512, 10.0}},
          {{1, 0.035}, {8, 0.12}, {64, 0.60}, {256, 2.2}}};
}

// 40 layers on an H200 (bench/results).
DraftMachine gpu() {
  return {"gpu",
          {{1, 0.0112},
           {2, 0.0133},
           {3, 0.0159},
           {4, 0.0165},
           {6, 0.0187},
           {12, 0.0272},
           {24, 0.0323},
           {48, 0.0368},
           {96, 0.0430},
           {128, 0.0494},
           {192, 0.0574},
           {256, 0.0668},
           {384, 0.0916},
           {512, 0.1112}},
          {{1, 0.00145}, {8, 0.0024}, {64, 0.0062}, {256, 0.0186}}};
}

// Tiles of 8, 32, 128 and 512 rows, whose borders no measurement hits.
DraftMachine steps() {
  return {"steps",
          {{1, 0.0100},
           {8, 0.0101},
           {9, 0.0115},
           {32, 0.0118},
           {33, 0.0140},
           {128, 0.0150},
           {129, 0.0200},
           {512, 0.0230}},
          {{1, 0.0010}, {32, 0.0015}, {33, 0.0030}, {256, 0.0060}}};
}

struct Rates {
  double none = 0, best = 0, rule = 0;
  int32_t best_fixed = 0;
};

double rate(const DraftMachine& machine, const DraftTraffic& traffic, int32_t fixed,
            bool is_measured = true) {
  DraftEngine engine(machine, traffic, fixed, is_measured);
  engine.run(is_measured ? 200 : 1000);
  engine.take_tokens_per_s();
  engine.run(std::clamp(32000 / traffic.num_sequences, 300, 5000));
  return engine.take_tokens_per_s();
}

Rates rates(const DraftMachine& machine, const DraftTraffic& traffic, bool is_measured) {
  Rates r;
  r.none = r.best = rate(machine, traffic, 0);
  for (int32_t fixed = 1; fixed <= 5; ++fixed) {
    const double one = rate(machine, traffic, fixed);
    if (one > r.best) r.best_fixed = fixed;
    r.best = std::max(r.best, one);
  }
  r.rule = rate(machine, traffic, -1, is_measured);
  return r;
}

struct Grid {
  std::vector<int32_t> sequences = {1, 4, 16, 64, 256};
  std::vector<double> acceptances = {0.1, 0.3, 0.6, 0.8, 0.95};
  bool is_measured = true;
  double least_of_best = 0;
};

void compare(const DraftTraffic& kind, const Grid& grid) {
  for (const DraftMachine& machine : {flat(), linear(), cpu(), gpu(), steps()}) {
    double of_none = 9, of_best = 9;
    bool varies = false;
    for (const int32_t n : grid.sequences) {
      for (const double p : grid.acceptances) {
        DraftTraffic traffic = kind;
        traffic.num_sequences = n;
        traffic.acceptance = p;
        traffic.varies = varies = !varies;
        const Rates r = rates(machine, traffic, grid.is_measured);
        EXPECT_GE(r.rule, 0.98 * r.none) << machine.name << ' ' << n << ' ' << p << ' ' << varies;
        EXPECT_GE(r.rule, grid.least_of_best * r.best)
            << machine.name << ' ' << n << ' ' << p << ' ' << varies << ", best " << r.best_fixed;
        of_none = std::min(of_none, r.rule / r.none);
        of_best = std::min(of_best, r.rule / r.best);
      }
    }
    std::printf("%s: at least %.3f of none, %.3f of the best fixed number\n", machine.name.c_str(),
                of_none, of_best);
  }
}

TEST(DraftGrid, IsNeverSlowerThanNoneAndNearlyAsFastAsTheBestFixedNumber) {
  compare({}, {.least_of_best = 0.95});
}

// Where prompts fill every step, rows for drafts are theirs, and the rule leaves more of them.
TEST(DraftGrid, SoItIsBesidePromptsThatKeepComing) {
  compare({.prompt_tokens = 256, .answer_tokens = 128}, {.least_of_best = 0.9});
}

// Costs that are learned: from steps without prompts, so where those never come there are no
// drafts.
TEST(DraftGrid, SoItIsWhereCostsAreLearned) {
  Grid grid{.sequences = {1, 16, 256}, .acceptances = {0.1, 0.6, 0.95}, .is_measured = false};
  compare({.prompt_tokens = 256, .answer_tokens = 128}, grid);
  grid.least_of_best = 0.94;
  compare({}, grid);
}

// 2,000 steps of a text that the draft module is wrong about, then one that it knows.
TEST(DraftGrid, DraftsComeBackWhenTheTextChanges) {
  for (const int32_t n : {1, 8}) {
    DraftEngine engine(cpu(), {.num_sequences = n, .acceptance = 0.1, .overrated = 9}, -1, true);
    engine.run(100);
    int64_t rounds = engine.num_rounds();
    engine.run(1900);
    EXPECT_LE(engine.num_rounds() - rounds, 150) << n;
    engine.traffic.acceptance = 0.9;
    engine.traffic.overrated = 1;
    engine.run(3000);
    rounds = engine.num_rounds();
    engine.run(500);
    EXPECT_GE(engine.num_rounds() - rounds, 450) << n;
  }
}

}  // namespace
}  // namespace fathom::scheduler
