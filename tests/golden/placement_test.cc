// Where a model's parameters lie, and whether its draft module was placed, never shows in a bit.

#include <algorithm>

#include "golden/golden_checks.h"
#include "harness/random_values.h"

namespace fathom::test {
namespace {

TestModel open_demo(const model::PlacementOptions& placement) {
  return TestModel::open(std::string(FATHOM_SOURCE_DIR) + "/models/demo",
                         {.isa = best_isa(), .block_tokens = 128, .placement = placement});
}

std::vector<int32_t> some_ids(int64_t n, uint64_t seed) {
  harness::Random random(seed);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(3 + random.below(4000)));
  return ids;
}

// Logits of prompts in chunks and of tokens behind them, several sequences a step; tokens come
// often enough that steps become graphs.
std::vector<float> all_logits(TestModel& model) {
  std::vector<float> all;
  std::vector<std::unique_ptr<TestSequence>> sequences;
  for (uint64_t i = 0; i < 3; ++i) {
    TestSequence& s = *sequences.emplace_back(std::make_unique<TestSequence>(model));
    const std::vector<int32_t> ids = some_ids(190, 7 + i);
    for (const int64_t n : {1, 70, 119}) {
      const auto part =
          std::span(ids).subspan(static_cast<size_t>(s.position()), static_cast<size_t>(n));
      const std::vector<float> logits = s.step(part, {.num_logits = static_cast<int32_t>(n)});
      all.insert(all.end(), logits.begin(), logits.end());
    }
  }
  for (uint64_t step = 0; step < 6; ++step) {
    const std::vector<int32_t> ids = some_ids(3, 100 + step);
    std::vector<model::Segment> segments;
    for (size_t i = 0; i < 3; ++i) {
      segments.push_back(sequences[i]->segment(std::span(ids).subspan(i, 1)));
    }
    const std::vector<float> logits = forward(model, segments);
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

TEST(Placement, WithoutItsDraftModuleAModelHasTheSameLogitsAndMakesNoDrafts) {
  TestModel whole = open_demo({}), without = open_demo({.drafts = false});
  EXPECT_GT(whole.model().max_drafts(), 0);
  EXPECT_EQ(without.model().max_drafts(), 0);
  const std::vector<float> want = all_logits(whole), got = all_logits(without);
  EXPECT_EQ(got == want, true);
  const model::PlacedBytes& all = whole.model().placed_bytes();
  const model::PlacedBytes& less = without.model().placed_bytes();
  EXPECT_EQ(less.draft, 0);
  if (whole.model().device().shares_host_memory()) {
    EXPECT_EQ(all.on_device(), 0) << "a CPU uses parameters where they lie";
    return;
  }
  EXPECT_GT(all.draft, 1 << 20);
  EXPECT_EQ(less.on_device(), all.on_device() - all.draft);
  EXPECT_LE(less.on_device(), without.model().device().memory().used);
}

TEST(Placement, ExpertsAndTablesInHostMemoryGiveTheSameBits) {
  if (test_device == nullptr) GTEST_SKIP() << "skipped: a CPU has them in place";
  TestModel in_place = open_demo({});
  const std::vector<float> want = all_logits(in_place);
  const model::PlacedBytes& all = in_place.model().placed_bytes();
  for (const auto& [experts, engram] : {std::pair(true, false), {false, true}, {true, true}}) {
    SCOPED_TRACE(std::string(experts ? "experts " : "") + (engram ? "tables" : ""));
    TestModel moved = open_demo({.host_experts = experts, .host_engram = engram});
    EXPECT_EQ(all_logits(moved) == want, true);
    const model::PlacedBytes& placed = moved.model().placed_bytes();
    EXPECT_EQ(placed.experts, experts ? 0 : all.experts);
    EXPECT_EQ(placed.engram_tables, engram ? 0 : all.engram_tables);
    EXPECT_EQ(placed.host_engram_tables, engram ? all.engram_tables : 0);
    EXPECT_EQ(placed.arena > 0, experts);
    if (experts) {
      EXPECT_GE(placed.host_experts, all.experts);
    }
    EXPECT_LT(placed.on_device(), all.on_device());
    EXPECT_GE(moved.model().device().memory().pinned_on_host, placed.on_host());
    // Draft stages have experts too.
    TestSequence a(in_place), b(moved);
    const std::vector<int32_t> ids = some_ids(100, 3);
    (void)a.step(ids, {.drafts = true});
    (void)b.step(ids, {.drafts = true});
    const auto drafts = draft_greedily(in_place, {a.draft_segment(17, 5)});
    const auto moved_drafts = draft_greedily(moved, {b.draft_segment(17, 5)});
    EXPECT_EQ(moved_drafts[0].tokens, drafts[0].tokens);
    EXPECT_EQ(moved_drafts[0].confidence, drafts[0].confidence);
  }
  EXPECT_EQ(in_place.model().device().memory().pinned_on_host, 0) << "it is given back";
}

}  // namespace
}  // namespace fathom::test
