// T1 of docs/spec/tiny-config.md with the reference operations: the oracle's numbers, bit for bit where
// it gives them in full, to the digits it prints where not.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "golden/golden_file.h"
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

TopList top(std::span<const float> logits, size_t k) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  TopList out;
  for (size_t i = 0; i < k; ++i) {
    const double v = static_cast<double>(logits[static_cast<size_t>(order[i])]);
    out.emplace_back(order[i], std::round(v * 1e4) / 1e4);
  }
  return out;
}

void expect_top(std::span<const float> logits, const boost::json::value& want) {
  const TopList expected = to_top(want), got = top(logits, expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(got[i].first, expected[i].first) << "place " << i;
    EXPECT_NEAR(got[i].second, expected[i].second, 1e-9) << "place " << i;
  }
}

double sum_abs(std::span<const float> x) {
  double sum = 0;
  for (const float v : x) sum += std::fabs(static_cast<double>(v));
  return std::round(sum * 1e3) / 1e3;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

class Recorder : public model::LayerProbe {
 public:
  void before_layer(int32_t, const Rows&) override {}
  void after_layer(int32_t layer, const Rows& rows) override {
    const size_t width = rows.x.size() / static_cast<size_t>(rows.num_rows);
    double sum = 0;
    for (const Bf16 v : rows.x.last(width)) sum += std::fabs(static_cast<double>(to_float(v)));
    stream[layer] = std::round(sum * 1e3) / 1e3;
    const size_t copies = rows.pre.size() / static_cast<size_t>(rows.num_rows);
    const auto last = rows.pre.last(copies);
    pre[layer].assign(last.begin(), last.end());
  }
  void chosen(int32_t layer, std::span<const int32_t> rows, std::span<const int32_t> num_chosen,
              int64_t topk) override {
    const auto last = rows.subspan((num_chosen.size() - 1) * static_cast<size_t>(topk));
    last_chosen[layer].assign(last.begin(), last.begin() + num_chosen.back());
  }
  std::map<int32_t, double> stream;
  std::map<int32_t, std::vector<float>> pre;
  std::map<int32_t, std::vector<int32_t>> last_chosen;
};

TEST_F(T1, PrefillGivesTheOraclesStreamAfterEveryLayer) {
  TestSequence s(*model_);
  Recorder recorder;
  const auto logits = s.step(ids(0, 37), {.probe = &recorder});
  for (const auto& entry : golden_.at("trace37").as_array()) {
    const auto& e = entry.as_array();
    const auto layer = e[0].to_number<int32_t>();
    EXPECT_DOUBLE_EQ(recorder.stream[layer], e[1].to_number<double>()) << "layer " << layer;
    for (size_t k = 0; k < 4; ++k) {
      const double got = static_cast<double>(recorder.pre[layer][k]);
      EXPECT_NEAR(got, e[2].as_array()[k].to_number<double>(), 5.1e-6) << "layer " << layer;
    }
  }
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
  const auto right = top(row(full, 44), 3);
  const auto& mistakes = golden_.at("mistakes").as_object();
  EXPECT_GE(mistakes.size(), 47u);
  for (const auto& [name, wrong] : mistakes) {
    const TopList other = to_top(wrong);
    double difference = 0;
    for (size_t i = 0; i < other.size(); ++i) {
      const auto id = static_cast<size_t>(other[i].first);
      difference = std::max(
          difference, std::fabs(static_cast<double>(row(full, 44)[id]) - other[i].second));
    }
    EXPECT_GT(difference, 0.01) << name;
  }
  expect_top(row(full, 44), golden_.at("decode44_top"));
}

}  // namespace
}  // namespace fathom::test
