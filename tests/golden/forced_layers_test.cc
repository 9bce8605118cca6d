// Fast kernels against the reference operations, layer by layer: every layer gets the reference's
// input stream and makes its own rows and choices.  Limits: docs/spec/tiny-config.md "How to
// compare", 2.

#include <cmath>

#include "golden/golden_checks.h"

namespace fathom::test {
namespace {

struct LayerRecord {
  std::vector<Bf16> x_in, x_out;
  std::vector<float> pre_in, pre_out;
  std::vector<int32_t> rows, num_chosen;
};

class Record : public model::LayerProbe {
 public:
  void before_layer(int32_t layer, const Rows& r) override {
    layers[layer].x_in.assign(r.x.begin(), r.x.end());
    layers[layer].pre_in.assign(r.pre.begin(), r.pre.end());
  }
  void after_layer(int32_t layer, const Rows& r) override {
    layers[layer].x_out.assign(r.x.begin(), r.x.end());
    layers[layer].pre_out.assign(r.pre.begin(), r.pre.end());
  }
  void chosen(int32_t layer, std::span<const int32_t> rows, std::span<const int32_t> num_chosen,
              int64_t) override {
    layers[layer].rows.assign(rows.begin(), rows.end());
    layers[layer].num_chosen.assign(num_chosen.begin(), num_chosen.end());
  }
  std::map<int32_t, LayerRecord> layers;
};

struct LayerResult {
  double equal_share = 0;
  int64_t rows_touched = 0;
  double pre_error = 0;
};

class Forced : public model::LayerProbe {
 public:
  explicit Forced(const Record& record) : record_(record) {}
  void before_layer(int32_t layer, const Rows& r) override {
    const LayerRecord& want = record_.layers.at(layer);
    std::copy(want.x_in.begin(), want.x_in.end(), r.x.begin());
    std::copy(want.pre_in.begin(), want.pre_in.end(), r.pre.begin());
  }
  void after_layer(int32_t layer, const Rows& r) override {
    const LayerRecord& want = record_.layers.at(layer);
    LayerResult& got = results[layer];
    const size_t width = r.x.size() / static_cast<size_t>(r.num_rows);
    size_t equal = 0;
    for (size_t row = 0; row < static_cast<size_t>(r.num_rows); ++row) {
      size_t same = 0;
      for (size_t i = row * width; i < (row + 1) * width; ++i) same += r.x[i] == want.x_out[i];
      equal += same;
      got.rows_touched += same != width;
    }
    got.equal_share = static_cast<double>(equal) / static_cast<double>(r.x.size());
    for (size_t i = 0; i < r.pre.size(); ++i) {
      const double d = static_cast<double>(r.pre[i]) - static_cast<double>(want.pre_out[i]);
      got.pre_error = std::max(got.pre_error, std::fabs(d));
    }
  }
  void chosen(int32_t layer, std::span<const int32_t> rows, std::span<const int32_t> num_chosen,
              int64_t topk) override {
    const LayerRecord& want = record_.layers.at(layer);
    for (size_t r = 0; r < num_chosen.size(); ++r, ++num_queries) {
      const size_t at = r * static_cast<size_t>(topk);
      const auto n = static_cast<size_t>(num_chosen[r]);
      const bool same = num_chosen[r] == want.num_chosen[r] &&
                        std::equal(rows.begin() + static_cast<ptrdiff_t>(at),
                                   rows.begin() + static_cast<ptrdiff_t>(at + n),
                                   want.rows.begin() + static_cast<ptrdiff_t>(at));
      num_other_sets += !same;
    }
  }
  double median_share() const {
    std::vector<double> shares;
    for (const auto& [layer, r] : results) shares.push_back(r.equal_share);
    std::sort(shares.begin(), shares.end());
    return shares[shares.size() / 2];
  }
  std::map<int32_t, LayerResult> results;
  int64_t num_queries = 0, num_other_sets = 0;

 private:
  const Record& record_;
};

class ForcedLayers : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    const std::string missing = missing_feature(GetParam());
    if (!missing.empty()) GTEST_SKIP() << "skipped: no " << missing;
  }
  static Forced compare(TestModel& reference, TestModel& fast, std::span<const int32_t> ids) {
    Record record;
    TestSequence want(reference), got(fast);
    want.step(ids, {.probe = &record});
    Forced forced(record);
    got.step(ids, {.probe = &forced});
    return forced;
  }
};

TEST_P(ForcedLayers, T1StaysWithinTheLimits) {
  TestModel reference("t1"), fast("t1", {.isa = GetParam()});
  const auto ids = to_ids(read_json("tests/golden/tiny_golden.json").at("prompt"));
  const Forced got = compare(reference, fast, ids);
  EXPECT_EQ(got.num_other_sets, 0) << "of " << got.num_queries;
  EXPECT_GE(got.median_share(), 0.9999);
  for (const auto& [layer, r] : got.results) {
    EXPECT_GE(r.equal_share, 0.985) << "layer " << layer;
    EXPECT_LE(r.rows_touched, 6) << "layer " << layer;
    EXPECT_LE(r.pre_error, 1e-3) << "layer " << layer;
  }
}

TEST_P(ForcedLayers, DemoStaysWithinTheLimits) {
  const std::string dir = std::string(FATHOM_SOURCE_DIR) + "/models/demo";
  TestModel reference =
      TestModel::open(dir, {.isa = Isa::kReference, .block_tokens = 128, .device = nullptr});
  TestModel fast = TestModel::open(dir, {.isa = GetParam(), .block_tokens = 128});
  const boost::json::value golden = read_json("tests/data/demo/golden.json");
  for (const auto& row : golden.at("rows").as_array()) {
    if (row.at("id").as_string() != "tools-001")
      continue;  // 481 tokens: every sparse mechanism binds
    const Forced got = compare(reference, fast, to_ids(row.at("ids")));
    EXPECT_LE(got.num_other_sets * 100, got.num_queries) << got.num_other_sets;
    for (const auto& [layer, r] : got.results) {
      EXPECT_GE(r.equal_share, 0.96) << "layer " << layer;
    }
  }
}

// KL(reference || fast) of every prompt row, each model running freely.
TEST_P(ForcedLayers, DemoDistributionsStayClose) {
  const std::string dir = std::string(FATHOM_SOURCE_DIR) + "/models/demo";
  TestModel reference =
      TestModel::open(dir, {.isa = Isa::kReference, .block_tokens = 128, .device = nullptr});
  TestModel fast = TestModel::open(dir, {.isa = GetParam(), .block_tokens = 128});
  const auto v = static_cast<size_t>(fast.config().vocab_size);
  std::vector<double> kl;
  const boost::json::value golden = read_json("tests/data/demo/golden.json");
  for (const auto& row : golden.at("rows").as_array()) {
    const auto ids = to_ids(row.at("ids"));
    if (std::string(row.at("id").as_string()).starts_with("image-") || ids.size() > 400) continue;
    const auto n = static_cast<int32_t>(ids.size());
    TestSequence a(reference), b(fast);
    const auto p = a.step(ids, {.num_logits = n}), q = b.step(ids, {.num_logits = n});
    for (size_t r = 0; r < ids.size(); ++r) {
      double zp = 0, zq = 0, sum = 0;
      for (size_t i = r * v; i < (r + 1) * v; ++i) {
        zp += std::exp(static_cast<double>(p[i]));
        zq += std::exp(static_cast<double>(q[i]));
      }
      for (size_t i = r * v; i < (r + 1) * v; ++i) {
        const double lp = static_cast<double>(p[i]) - std::log(zp);
        sum += std::exp(lp) * (lp - (static_cast<double>(q[i]) - std::log(zq)));
      }
      kl.push_back(sum);
    }
  }
  std::sort(kl.begin(), kl.end());
  const double mean = std::accumulate(kl.begin(), kl.end(), 0.0) / static_cast<double>(kl.size());
  EXPECT_GE(kl.size(), 900u);
  EXPECT_LE(mean, 0.03);
  EXPECT_LE(kl[kl.size() * 99 / 100], 0.3);
  std::printf("KL over %zu rows: mean %.5f, p99 %.4f, max %.4f\n", kl.size(), mean,
              kl[kl.size() * 99 / 100], kl.back());
}

INSTANTIATE_TEST_SUITE_P(Isas, ForcedLayers, testing::Values(Isa::kPlain, Isa::kAvx2, Isa::kAvx512),
                         [](const auto& p) { return std::string(isa_name(p.param)); });

}  // namespace
}  // namespace fathom::test
