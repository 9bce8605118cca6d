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
  const int64_t pinned = in_place.model().device().memory().pinned_on_host;  // lists, logits
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
  EXPECT_EQ(in_place.model().device().memory().pinned_on_host, pinned) << "it is given back";
}

// Small and large ones, next to each other, with gaps of padding and of other data, in any order.
TEST(Placement, CopiesArriveWhereverTheyLie) {
  Device& device = test_device != nullptr ? *test_device : cpu_device();
  auto stream = *device.make_stream(1);
  ThreadPool pool(3);
  harness::Random random(11);
  std::vector<HostCopy> copies;
  const int64_t sizes[] = {1,          255, 256, 257, 4 << 20, (4 << 20) - 1, (4 << 20) + 1,
                           13'000'000, 777};
  constexpr int64_t kTotal = int64_t{96} << 20;
  std::vector<std::byte> want(static_cast<size_t>(kTotal)), from(want.size());
  for (std::byte& b : from) b = static_cast<std::byte>(random.below(255) + 1);
  Buffer to = *device.allocate(kTotal);
  ASSERT_TRUE(device.write(to.data(), want.data(), kTotal).ok());
  for (int64_t at = 0, i = 0;; ++i) {
    const int64_t size = sizes[static_cast<size_t>(i) % std::size(sizes)];
    if (at + size > kTotal) break;
    copies.push_back({to.data() + at, from.data() + at, size});
    std::copy_n(from.data() + at, size, want.data() + at);
    at = (at + size + 255) / 256 * 256 + (i % 3 == 0 ? 256 : 0);
  }
  std::reverse(copies.begin() + 5, copies.begin() + 9);
  ASSERT_TRUE(device.write(copies, pool).ok());
  std::vector<std::byte> got(want.size());
  stream->copy(got.data(), to.data(), got.size());
  ASSERT_TRUE(stream->synchronize().ok());
  for (const HostCopy& c : copies) {
    const int64_t at = c.to - to.data();
    ASSERT_TRUE(std::equal(got.begin() + at, got.begin() + at + c.bytes, want.begin() + at))
        << at << ' ' << c.bytes;
  }
  // What is 256 bytes wide and between them is not touched.
  for (size_t i = 1; i < copies.size(); ++i) {
    const int64_t end = (copies[i - 1].to - to.data() + copies[i - 1].bytes + 255) / 256 * 256;
    if (copies[i].to - to.data() != end + 256) continue;
    for (int64_t b = end; b < end + 256; ++b) {
      ASSERT_EQ(got[static_cast<size_t>(b)], std::byte{0}) << b;
    }
  }
}

}  // namespace
}  // namespace fathom::test
