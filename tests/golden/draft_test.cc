// DSpark drafts (docs/spec/model.md 8): the oracle's tokens and confidences bit for bit with the
// reference operations, within its limits with the others; and a sequence that drafted, verified
// and took rows back has the bytes of one that never did.

#include <array>
#include <numeric>

#include "golden/golden_checks.h"
#include "harness/random_values.h"
#include "harness/test_model.h"

namespace fathom::test {
namespace {

class T1Drafts : public testing::Test {
 protected:
  boost::json::value golden_ = read_json("tests/golden/tiny_golden.json");
  std::vector<int32_t> prompt_ = to_ids(golden_.at("prompt"));
  TestModel model_{"t1"};
};

TEST_F(T1Drafts, AreTheOracles) {
  for (const std::vector<size_t>& cuts : {std::vector<size_t>{37}, {5, 16, 37}, {1, 30, 36, 37}}) {
    TestSequence s(model_);
    size_t at = 0;
    std::vector<float> logits;
    for (const size_t to : cuts) {
      logits = s.step(std::span(prompt_).subspan(at, to - at), {.drafts = true});
      at = to;
    }
    const auto drafts = draft_greedily(model_, {s.draft_segment(argmax(logits), 5)});
    expect_drafts(drafts[0], golden_.at("draft_after_37"), golden_.at("confidence_after_37"));
    const auto seen = draft_greedily(model_, {s.draft_segment(argmax(logits), 5)}, true);
    EXPECT_EQ(seen[0].tokens, drafts[0].tokens);
    EXPECT_TRUE(same_bits(seen[0].confidence, drafts[0].confidence));
    // A shorter round gives the same tokens.
    const auto two = draft_greedily(model_, {s.draft_segment(argmax(logits), 2)});
    EXPECT_TRUE(std::equal(two[0].tokens.begin(), two[0].tokens.end(), drafts[0].tokens.begin()));
    EXPECT_EQ(two[0].tokens.size(), 2u);
  }
}

// Greedy decoding by drafts; the number of accepted ones of every round goes to `accepted`.
std::vector<int32_t> speculate(TestModel& model, TestSequence& s, std::span<const int32_t> prompt,
                               size_t n, int32_t num_drafts, StepOptions options,
                               std::vector<int32_t>* accepted = nullptr) {
  options.drafts = true;
  const auto vocab = static_cast<size_t>(model.config().vocab_size);
  std::vector<int32_t> out{argmax(s.step(prompt, options))};
  while (out.size() < n) {
    const auto drafts = draft_greedily(model, {s.draft_segment(out.back(), num_drafts)});
    std::vector<int32_t> ids{out.back()};
    ids.insert(ids.end(), drafts[0].tokens.begin(), drafts[0].tokens.end());
    options.num_logits = static_cast<int32_t>(ids.size());
    const std::vector<float> logits = s.step(ids, options);
    size_t row = 0;
    do {
      out.push_back(argmax(std::span(logits).subspan(row++ * vocab, vocab)));
    } while (row < ids.size() && ids[row] == out.back());
    s.roll_back(static_cast<int64_t>(ids.size() - row));
    if (accepted != nullptr) accepted->push_back(static_cast<int32_t>(row) - 1);
  }
  out.resize(n);
  return out;
}

TEST_F(T1Drafts, VerifiedAndTakenBackGiveTheGreedyTextAndTheOraclesAcceptance) {
  for (int32_t num_drafts = 1; num_drafts <= 5; ++num_drafts) {
    TestSequence s(model_);
    std::vector<int32_t> accepted;
    const auto out =
        speculate(model_, s, std::span(prompt_).first(37), 14, num_drafts, {}, &accepted);
    EXPECT_EQ(out, to_ids(golden_.at("greedy14"))) << num_drafts;
    if (num_drafts < 5) continue;
    EXPECT_EQ(accepted, to_ids(golden_.at("accepted_per_round")));
  }
}

struct GoldenRow {
  std::string id;
  std::vector<int32_t> ids;
  boost::json::value mode[2];  // exact, replay
};

std::vector<GoldenRow> text_rows() {
  std::vector<GoldenRow> out;
  const boost::json::value golden = read_json("tests/data/demo/golden.json");
  for (const auto& r : golden.at("rows").as_array()) {
    const std::string id(r.at("id").as_string());
    if (!id.starts_with("image-"))
      out.push_back({id, to_ids(r.at("ids")), {r.at("exact"), r.at("replay")}});
  }
  return out;
}

TestModel open_demo(Isa isa, int32_t block_tokens = 128) {
  return TestModel::open(std::string(FATHOM_SOURCE_DIR) + "/models/demo",
                         {.isa = isa, .block_tokens = block_tokens});
}

class DraftRows : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    const std::string missing = missing_feature(GetParam());
    if (!missing.empty()) GTEST_SKIP() << "skipped: no " << missing;
    // Minutes on a CPU, which has the others; on a GPU these are its fast rows.
    if (GetParam() == Isa::kPlain && test_device == nullptr) GTEST_SKIP() << "skipped: no GPU";
  }
};

// All sequences of a round together, or each alone; a prefix of a chain, or all of it.
TEST_P(DraftRows, DoNotDependOnTheOthersOfTheirRound) {
  TestModel model = open_demo(GetParam());
  const auto rows = text_rows();
  std::vector<std::unique_ptr<TestSequence>> sequences;
  std::vector<model::DraftSegment> segments;
  for (const GoldenRow& row : rows) {
    sequences.push_back(std::make_unique<TestSequence>(model));
    const auto logits = sequences.back()->step(row.ids, {.drafts = true});
    const auto num_drafts = static_cast<int32_t>(1 + segments.size() % 5);
    segments.push_back(sequences.back()->draft_segment(argmax(logits), num_drafts));
  }
  const auto together = draft_greedily(model, segments);
  const auto seen = draft_greedily(model, segments, true);
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(rows[i].id);
    model::DraftSegment segment = segments[i];
    segment.num_drafts = 5;
    const auto alone = draft_greedily(model, {segment});
    const auto n = static_cast<size_t>(segments[i].num_drafts);
    ASSERT_EQ(together[i].tokens.size(), n);
    EXPECT_EQ(together[i].tokens, seen[i].tokens);
    EXPECT_TRUE(same_bits(together[i].confidence, seen[i].confidence));
    EXPECT_TRUE(
        std::equal(together[i].tokens.begin(), together[i].tokens.end(), alone[0].tokens.begin()));
    EXPECT_TRUE(same_bits(together[i].confidence, std::span(alone[0].confidence).first(n)));
  }
}

// Rounding moves a draft here and there; the measure is the share of the oracle's drafts, and how
// far confidences of equal chains move.
TEST_P(DraftRows, OfFastOperationsAreNearlyTheGoldenOnes) {
  TestModel model = open_demo(GetParam());
  int64_t num_equal = 0, num_all = 0;
  double difference = 0;
  for (const GoldenRow& row : text_rows()) {
    TestSequence s(model);
    const auto logits = s.step(
        row.ids,
        {.replay = true, .prompt_tokens = static_cast<int64_t>(row.ids.size()), .drafts = true});
    const auto& golden = row.mode[1].at("numpy");
    if (argmax(logits) != to_ids(golden.at("greedy"))[0]) continue;
    const auto drafts = draft_greedily(model, {s.draft_segment(argmax(logits), 5)});
    const auto want = to_ids(golden.at("drafts"));
    const auto confidence = to_numbers(golden.at("confidence"));
    num_all += 5;
    for (size_t i = 0; i < 5 && drafts[0].tokens[i] == want[i]; ++i, ++num_equal) {
      difference += std::fabs(static_cast<double>(drafts[0].confidence[i]) - confidence[i]);
    }
  }
  EXPECT_GE(num_all, 15 * 5);
  EXPECT_GE(num_equal * 100, num_all * 85) << num_equal << " of " << num_all;
  EXPECT_LT(difference / static_cast<double>(num_equal), 0.3);
}

// What is in STATE and PAGES after any pattern of accepted and rejected drafts: the image of the
// sequence, its pages and its next drafts are bit for bit those of one that computed its tokens one
// by one.
TEST_P(DraftRows, NothingIsLeftOfRejectedDrafts) {
  TestModel model = open_demo(GetParam(), 32);
  harness::Random random(77);
  std::vector<int32_t> ids;
  for (int i = 0; i < 400; ++i) ids.push_back(static_cast<int32_t>(3 + random.below(4000)));
  const auto part = [&](int64_t from, int64_t to) {
    return std::span(ids).subspan(static_cast<size_t>(from), static_cast<size_t>(to - from));
  };
  int num_compared = 0;
  for (int round = 0; round < 6; ++round) {
    const bool replay = round % 2 == 1;
    const int64_t prompt = round < 2 ? 20 + random.below(40) : 64 + random.below(200);
    const StepOptions options{.replay = replay, .prompt_tokens = prompt, .drafts = true};
    TestSequence plain(model), drafted(model);
    plain.step(part(0, prompt), options);
    drafted.step(part(0, prompt), options);
    while (drafted.position() < prompt + 70) {
      const int64_t at = drafted.position(), k = random.below(6), accepted = random.below(k + 1);
      std::vector<int32_t> rows(part(at, at + 1 + k).begin(), part(at, at + 1 + k).end());
      for (int64_t i = 1 + accepted; i <= k; ++i) rows[static_cast<size_t>(i)] ^= 1;  // wrong
      drafted.step(rows, options);
      drafted.roll_back(k - accepted);
      for (int64_t p = at; p <= at + accepted; ++p) plain.step(part(p, p + 1), options);
      if (random.below(3) != 0) continue;
      ++num_compared;
      ASSERT_EQ(drafted.save(true), plain.save(true)) << "round " << round << " at " << at;
      ASSERT_EQ(drafted.save(false), plain.save(false)) << "round " << round << " at " << at;
      const auto segments = {drafted.draft_segment(7, 5), plain.draft_segment(7, 5)};
      const auto drafts = draft_greedily(model, segments);
      EXPECT_EQ(drafts[0].tokens, drafts[1].tokens);
      EXPECT_EQ(drafts[0].confidence, drafts[1].confidence);
    }
    // Whole groups of all pages; what lies behind the position is nobody's.
    EXPECT_TRUE(drafted.equal_pages(plain)) << "round " << round;
  }
  EXPECT_GT(num_compared, 30);
}

// The windows go with an image; without them a sequence drafts on from its resume point.
TEST_P(DraftRows, GoThroughAnImage) {
  TestModel model = open_demo(GetParam(), 32);
  const GoldenRow row = text_rows()[5];
  const auto n = static_cast<int64_t>(row.ids.size());
  ASSERT_GT(n, 8);
  for (const bool replay : {false, true}) {
    const StepOptions options{.replay = replay, .prompt_tokens = n, .drafts = true};
    TestSequence straight(model), moved(model), without(model);
    const int32_t first = argmax(straight.step(row.ids, options));
    const int32_t second = argmax(straight.step({&first, 1}, options));
    const auto image = straight.save(true);
    moved.resume(image, straight, (n + 1) / 32 * 32);
    const auto drafts =
        draft_greedily(model, {straight.draft_segment(second, 5), moved.draft_segment(second, 5)});
    EXPECT_EQ(drafts[0].tokens, drafts[1].tokens);
    EXPECT_EQ(drafts[0].confidence, drafts[1].confidence);
    // One whose image has no draft rows: other drafts, the same tokens.
    TestSequence plain(model);
    StepOptions off = options;
    off.drafts = false;
    plain.step(row.ids, off);
    plain.step({&first, 1}, off);
    without.resume(plain.save(true), plain, (n + 1) / 32 * 32);
    const model::DraftSegment segment = without.draft_segment(second, 5);
    EXPECT_EQ(segment.floor, n + 1);
    EXPECT_EQ(draft_greedily(model, {segment})[0].tokens.size(), 5u);
    EXPECT_TRUE(
        same_bits(without.step({&second, 1}, options), straight.step({&second, 1}, options)));
    EXPECT_EQ(without.draft_segment(second, 5).floor, n + 1);
  }
}

// Rows that were not kept leave a gap: a round sees what follows it, whatever is before.
TEST_P(DraftRows, BehindAGapAreMadeFromWhatFollowsIt) {
  TestModel model = open_demo(GetParam());
  const std::vector<int32_t> ids = text_rows()[5].ids;
  ASSERT_GT(ids.size(), 12u);
  TestSequence all(model), gap(model), none(model);
  const size_t cuts[] = {0, 4, 8, ids.size()};
  int32_t last = -1;
  for (size_t i = 0; i < 3; ++i) {
    const auto part = std::span(ids).subspan(cuts[i], cuts[i + 1] - cuts[i]);
    last = argmax(all.step(part, {.drafts = true}));
    gap.step(part, {.drafts = i != 1});
    none.step(part, {.drafts = i == 2});
  }
  EXPECT_EQ(all.draft_segment(last, 5).floor, 0);
  EXPECT_EQ(gap.draft_segment(last, 5).floor, 8);
  const auto drafts = draft_greedily(
      model, {all.draft_segment(last, 5), gap.draft_segment(last, 5), none.draft_segment(last, 5)});
  EXPECT_EQ(drafts[1].tokens, drafts[2].tokens);
  EXPECT_TRUE(same_bits(drafts[1].confidence, drafts[2].confidence));
  EXPECT_FALSE(same_bits(drafts[1].confidence, drafts[0].confidence));
}

// Speculation gives the text of plain decoding for every draft length, in both modes.
TEST_P(DraftRows, DoNotChangeGreedyText) {
  TestModel model = open_demo(GetParam());
  const auto rows = text_rows();
  for (const size_t i : {size_t{2}, size_t{9}}) {
    for (const bool replay : {false, true}) {
      const StepOptions options{.replay = replay,
                                .prompt_tokens = static_cast<int64_t>(rows[i].ids.size())};
      TestSequence plain(model);
      std::vector<int32_t> want{argmax(plain.step(rows[i].ids, options))};
      while (want.size() < 40) want.push_back(argmax(plain.step({&want.back(), 1}, options)));
      for (const int32_t num_drafts : {1, 3, 5}) {
        TestSequence s(model);
        std::vector<int32_t> accepted;
        EXPECT_EQ(speculate(model, s, rows[i].ids, 40, num_drafts, options, &accepted), want);
        EXPECT_GT(std::accumulate(accepted.begin(), accepted.end(), 0), 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, DraftRows, testing::Values(Isa::kPlain, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& p) { return std::string(isa_name(p.param)); });

}  // namespace
}  // namespace fathom::test
