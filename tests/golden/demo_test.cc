// The demo model against the golden outputs of its trainer and the oracle
// (tests/data/demo/golden.json), which agree bit by bit: the reference operations give the same ids
// and the same logits to the digits printed.

#include "golden/golden_checks.h"

namespace fathom::test {
namespace {

struct GoldenRow {
  std::string id;
  std::vector<int32_t> ids;
  boost::json::value mode[2];  // exact, replay
};

// Rows without images (they wait for the vision tower).
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

TestModel open_demo(Isa isa) {
  return TestModel::open(std::string(FATHOM_SOURCE_DIR) + "/models/demo",
                         {.isa = isa, .block_tokens = 128});
}

// Greedy ids from the golden prompt; calls `first` with the sequence and the first token's logits.
template <class First>
std::vector<int32_t> greedy(TestModel& model, const GoldenRow& row, bool replay, size_t n,
                            First first) {
  TestSequence s(model);
  const StepOptions options{
      .replay = replay, .prompt_tokens = static_cast<int64_t>(row.ids.size()), .drafts = true};
  std::vector<float> logits = s.step(row.ids, options);
  first(s, logits);
  std::vector<int32_t> out{argmax(logits)};
  while (out.size() < n) {
    const int32_t last = out.back();
    out.push_back(argmax(s.step({&last, 1}, options)));
  }
  return out;
}

TEST(Demo, ReferenceOperationsGiveTheGoldenIdsLogitsAndDraftsInBothModes) {
  TestModel model = open_demo(Isa::kReference);
  const auto rows = text_rows();
  EXPECT_EQ(rows.size(), 18u);
  for (const GoldenRow& row : rows) {
    for (const bool replay : {false, true}) {
      SCOPED_TRACE(row.id + (replay ? " replay" : " exact"));
      const auto& golden = row.mode[replay ? 1 : 0].at("numpy");
      const auto ids =
          greedy(model, row, replay, 64, [&](TestSequence& s, std::span<const float> logits) {
            expect_top(logits, golden.at("top20"));
            const auto drafts = draft_greedily(model, {s.draft_segment(argmax(logits), 5)});
            expect_drafts(drafts[0], golden.at("drafts"), golden.at("confidence"));
          });
      EXPECT_EQ(ids, to_ids(golden.at("greedy")));
    }
  }
}

class DemoFast : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    const std::string missing = missing_feature(GetParam());
    if (!missing.empty()) GTEST_SKIP() << "skipped: no " << missing;
  }
};

// Tokens before the first close decision do not depend on rounding.
TEST_P(DemoFast, SafeTokensAreTheGoldenOnes) {
  TestModel model = open_demo(GetParam());
  for (const GoldenRow& row : text_rows()) {
    for (const bool replay : {false, true}) {
      const auto& mode = row.mode[replay ? 1 : 0];
      const auto safe = mode.at("safe_tokens").to_number<size_t>();
      auto want = to_ids(mode.at("numpy").at("greedy"));
      want.resize(safe);
      const auto got =
          greedy(model, row, replay, safe, [](TestSequence&, std::span<const float>) {});
      EXPECT_EQ(got, want) << row.id << (replay ? " replay" : " exact");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, DemoFast, testing::Values(Isa::kPlain, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& p) { return std::string(isa_name(p.param)); });

}  // namespace
}  // namespace fathom::test
