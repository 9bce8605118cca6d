// T1 of docs/spec/tiny-config.md with the reference operations: the oracle's numbers, bit for bit
// where it gives them in full, to the digits it prints where not.

#include <gtest/gtest.h>

#include "golden/golden_checks.h"
#include "harness/test_model.h"

namespace fathom::test {
namespace {

class T1 : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = new TestModel("t1"); }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }

  std::span<const int32_t> ids(size_t from, size_t to) const {
    return std::span(prompt_).subspan(from, to - from);
  }
  // Exact prefill of the whole prompt, all logits.
  std::vector<float> full_logits() {
    TestSequence s(*model_);
    return s.step(prompt_, {.num_logits = static_cast<int32_t>(prompt_.size())});
  }
  std::span<const float> row(const std::vector<float>& logits, size_t r) const {
    const auto v = static_cast<size_t>(model_->config().vocab_size);
    return std::span(logits).subspan(r * v, v);
  }

  static TestModel* model_;
  boost::json::value golden_ = read_json("tests/golden/tiny_golden.json");
  std::vector<int32_t> prompt_ = to_ids(golden_.at("prompt"));
};
TestModel* T1::model_ = nullptr;

TEST_F(T1, PrefillGivesTheOraclesStreamAfterEveryLayer) {
  TestSequence s(*model_);
  Recorder recorder;
  const auto logits = s.step(ids(0, 37), {.probe = &recorder});
  expect_trace(recorder, golden_.at("trace37"));
  EXPECT_EQ(recorder.last_chosen[2], to_ids(golden_.at("prefill37_topk_layer2_last")));
  EXPECT_EQ(recorder.last_chosen[8], to_ids(golden_.at("prefill37_topk_layer8_last")));
  expect_top(logits, golden_.at("prefill37_top"));
  EXPECT_DOUBLE_EQ(sum_abs(logits), golden_.at("prefill37_sum_abs").as_double());
}

TEST_F(T1, GreedyTextIsTheOracles) {
  TestSequence s(*model_);
  std::vector<int32_t> out{argmax(s.step(ids(0, 37)))};
  while (out.size() < 14) {
    const int32_t last = out.back();
    out.push_back(argmax(s.step({&last, 1})));
  }
  EXPECT_EQ(out, to_ids(golden_.at("greedy14")));
}

TEST_F(T1, DecodeEqualsPrefillBitForBit) {
  const auto full = full_logits();
  TestSequence s(*model_);
  EXPECT_TRUE(same_bits(s.step(ids(0, 37)), row(full, 36)));
  for (size_t i = 37; i < 45; ++i) {
    EXPECT_TRUE(same_bits(s.step(ids(i, i + 1)), row(full, i))) << "position " << i;
  }
  expect_top(row(full, 44), golden_.at("decode44_top"));
}

TEST_F(T1, ChunkedPrefillEqualsPrefillBitForBit) {
  const auto full = full_logits();
  for (const std::vector<size_t>& cuts :
       {std::vector<size_t>{5, 16}, {1, 2, 3, 44}, {7, 14, 21, 28, 35, 42}, {44}}) {
    TestSequence s(*model_);
    size_t at = 0;
    std::vector<float> logits;
    for (size_t cut : cuts) {
      s.step(ids(at, cut), {.num_logits = 0});
      at = cut;
    }
    logits = s.step(ids(at, 45));
    EXPECT_TRUE(same_bits(logits, row(full, 44))) << "first cut " << cuts.front();
  }
}

TEST_F(T1, BoundedReplayGivesTheOraclesLogitsForEveryChunking) {
  for (const std::vector<size_t>& cuts :
       {std::vector<size_t>{}, {5, 16}, {36, 37, 38, 41}, {44}, {20, 40}}) {
    TestSequence s(*model_);
    size_t at = 0;
    for (size_t cut : cuts) {
      s.step(ids(at, cut), {.num_logits = 0, .replay = true, .prompt_tokens = 45});
      at = cut;
    }
    const auto logits = s.step(ids(at, 45), {.replay = true, .prompt_tokens = 45});
    expect_top(logits, golden_.at("replay8_top"));
  }
}

TEST_F(T1, ReplayOfTheExactSpanEqualsExactBitForBit) {
  const auto full = full_logits();
  TestSequence s(*model_);
  const auto logits = s.step(prompt_, {.replay = true, .prompt_tokens = 45, .replay_rows = 43});
  EXPECT_TRUE(same_bits(logits, row(full, 44)));
}

// Embeddings of the image span: the oracle's stream of uniform values, seeded by a name.
std::vector<Bf16> oracle_uniform_bf16(const std::string& name, size_t n) {
  uint64_t seed = 0xcbf29ce484222325u;
  for (const char ch : name) seed = (seed ^ static_cast<uint8_t>(ch)) * 0x100000001b3u;
  std::vector<Bf16> out;
  for (uint64_t i = 1; i <= n; ++i) {
    uint64_t z = seed + i * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    out.push_back(to_bf16(static_cast<float>(static_cast<double>(z >> 40) / 8388608.0 - 1)));
  }
  return out;
}

TEST_F(T1, AnImageSpanWithGivenEmbeddingsGivesTheOraclesLogits) {
  const auto h = static_cast<size_t>(model_->config().hidden_size);
  const auto rows = oracle_uniform_bf16("image", 9 * h);
  StepOptions options;
  options.is_image.assign(45, 0);
  options.embeddings.assign(45, nullptr);
  for (size_t i = 10; i < 19; ++i) {
    options.is_image[i] = 1;
    options.embeddings[i] = rows.data() + (i - 10) * h;
  }
  TestSequence s(*model_);
  const auto logits = s.step(prompt_, options);
  expect_top(logits, golden_.at("image10_19_top"));
  EXPECT_DOUBLE_EQ(sum_abs(logits), golden_.at("image10_19_sum_abs").as_double());
}

// Each of the known mistakes would have given these logits instead (docs/spec/tiny-config.md).
TEST_F(T1, ResultDiffersFromEveryKnownMistake) {
  const auto full = full_logits();
  const auto& mistakes = golden_.at("mistakes").as_object();
  EXPECT_GE(mistakes.size(), 47u);
  for (const auto& [name, wrong] : mistakes) {
    const TopList other = to_top(wrong);
    double difference = 0;
    for (size_t i = 0; i < other.size(); ++i) {
      const auto id = static_cast<size_t>(other[i].first);
      difference =
          std::max(difference, std::fabs(static_cast<double>(row(full, 44)[id]) - other[i].second));
    }
    EXPECT_GT(difference, 0.01) << name;
  }
  expect_top(row(full, 44), golden_.at("decode44_top"));
}

}  // namespace
}  // namespace fathom::test
