// K1 of docs/spec/tiny-config.md: the real row formats (288, 68, 528 bytes), more rows than
// index_topk.

#include "golden/golden_checks.h"

namespace fathom::test {
namespace {

class K1 : public testing::Test {
 protected:
  boost::json::value golden_ = read_json("tests/golden/tiny_golden.json").at("K1");
  std::vector<int32_t> prompt_ = to_ids(golden_.at("prompt"));
  TestModel model_{"k1", {.block_tokens = 128}};
};

TEST_F(K1, LayoutsAreThoseOfTheRelease) {
  const auto& layout = model_.model().kv_layout();
  EXPECT_EQ(layout.kv_rows(2, nullptr).row_bytes, 288);
  EXPECT_EQ(layout.key_rows(2, nullptr).row_bytes, 68);
  EXPECT_EQ(model_.model().state_layout().window_row_bytes(), 528);
}

TEST_F(K1, Prefill700GivesTheOraclesStreamChoicesAndLogits) {
  TestSequence s(model_);
  Recorder recorder;
  const auto v = static_cast<size_t>(model_.config().vocab_size);
  const auto logits = s.step(prompt_, {.num_logits = 700, .probe = &recorder});
  expect_trace(recorder, golden_.at("trace"));
  for (const auto& entry : golden_.at("rows").as_object()) {
    const int32_t layer = std::stoi(std::string(entry.key()));
    EXPECT_EQ(recorder.hash[layer].count, entry.value().as_array()[0].to_number<int64_t>());
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016lx", recorder.hash[layer].value);
    EXPECT_EQ(hex, entry.value().as_array()[1].as_string()) << "layer " << layer;
  }
  const auto all = std::span(logits);
  expect_top(all.last(v), golden_.at("top"));
  EXPECT_DOUBLE_EQ(sum_abs(all.last(v)), golden_.at("sum_abs").as_double());
  EXPECT_NEAR(sum_abs(all), golden_.at("sum_abs_all").as_double(), 1e-3);
  for (const auto& entry : golden_.at("top_at").as_object()) {
    const size_t row = std::stoul(std::string(entry.key()));
    expect_top(all.subspan(row * v, v), entry.value());
  }
}

TEST_F(K1, ChunksAndDecodeOf150TokensEqualThePrefix) {
  TestSequence s(model_);
  const auto ids = std::span<const int32_t>(prompt_);
  s.step(ids.first(97), {.num_logits = 0});
  s.step(ids.subspan(97, 50), {.num_logits = 0});
  std::vector<float> logits;
  for (size_t i = 147; i <= 150; ++i) logits = s.step(ids.subspan(i, 1));
  expect_top(logits, golden_.at("top_at").at("150"));
}

}  // namespace
}  // namespace fathom::test
