// Comparisons with the oracle's printed values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <span>

#include "golden/golden_file.h"
#include "harness/test_model.h"

namespace fathom::test {

inline TopList top_of(std::span<const float> logits, size_t k) {
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

inline void expect_top(std::span<const float> logits, const boost::json::value& want) {
  const TopList expected = to_top(want), got = top_of(logits, expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(got[i].first, expected[i].first) << "place " << i;
    EXPECT_NEAR(got[i].second, expected[i].second, 1e-9) << "place " << i;
  }
}

inline double sum_abs(std::span<const float> x) {
  double sum = 0;
  for (const float v : x) sum += std::fabs(static_cast<double>(v));
  return std::round(sum * 1e3) / 1e3;
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// FNV-1a 64 of ids as little-endian u32, as the oracle hashes the rows that an index layer chose.
struct RowHash {
  uint64_t value = 0xcbf29ce484222325u;
  int64_t count = 0;
  void add(int32_t id) {
    for (int shift = 0; shift < 32; shift += 8) {
      value = (value ^ ((static_cast<uint32_t>(id) >> shift) & 0xffu)) * 0x100000001b3u;
    }
    ++count;
  }
};

// Keeps what the oracle prints of a forward: sums and choices of the last row, hashes of all
// choices.
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
    for (size_t r = 0; r < num_chosen.size(); ++r) {
      const auto row = rows.subspan(r * static_cast<size_t>(topk));
      for (int32_t i = 0; i < num_chosen[r]; ++i) hash[layer].add(row[static_cast<size_t>(i)]);
    }
  }
  std::map<int32_t, double> stream;
  std::map<int32_t, std::vector<float>> pre;
  std::map<int32_t, std::vector<int32_t>> last_chosen;
  std::map<int32_t, RowHash> hash;
};

// `trace`: [layer, sum of the last token's absolute stream values, its next pre], the sum to 3
// digits.
inline void expect_trace(Recorder& got, const boost::json::value& trace) {
  for (const auto& entry : trace.as_array()) {
    const auto& e = entry.as_array();
    const auto layer = e[0].to_number<int32_t>();
    EXPECT_DOUBLE_EQ(got.stream[layer], e[1].to_number<double>()) << "layer " << layer;
    for (size_t k = 0; k < e[2].as_array().size(); ++k) {
      const double pre = static_cast<double>(got.pre[layer][k]);
      EXPECT_NEAR(pre, e[2].as_array()[k].to_number<double>(), 5.1e-6) << "layer " << layer;
    }
  }
}

inline std::vector<double> to_numbers(const boost::json::value& v) {
  return boost::json::value_to<std::vector<double>>(v);
}

// Confidences are printed with 4 digits.
inline void expect_drafts(const model::Draft& got, const boost::json::value& tokens,
                          const boost::json::value& confidence) {
  EXPECT_EQ(got.tokens, to_ids(tokens));
  const std::vector<double> want = to_numbers(confidence);
  ASSERT_EQ(got.confidence.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(got.confidence[i]), want[i], 5.1e-5) << "draft " << i;
  }
}

}  // namespace fathom::test
