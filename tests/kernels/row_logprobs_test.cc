// Log-probabilities of rows: near the true ones, and the same bits on every device.
#include "kernels/row_logprobs/row_logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "harness/kernel_harness.h"
#include "harness/random_values.h"

namespace fathom::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kRows = 7;

struct Outputs {
  std::vector<float> logprobs;
  std::vector<int32_t> top;
};

Outputs run(const Kernel<RowLogprobsArgs>& kernel, const std::vector<float>& logits, int64_t width,
            const std::vector<int64_t>& row, const std::vector<int32_t>& ids, int64_t num_top) {
  const auto n = std::ssize(row);
  std::vector<int64_t> id_at(row.size());
  std::iota(id_at.rbegin(), id_at.rend(), 0);  // the last row has the first id
  Outputs out{std::vector<float>(static_cast<size_t>(n * (1 + num_top)), -7),
              std::vector<int32_t>(static_cast<size_t>(n * num_top), -7)};
  harness::run_kernel(kernel, {.logits = logits.data(),
                               .row = row.data(),
                               .ids = ids.data(),
                               .id_at = id_at.data(),
                               .logprobs = out.logprobs.data(),
                               .top = out.top.data(),
                               .num_rows = n,
                               .num_top = num_top,
                               .width = width,
                               .stream = nullptr});
  return out;
}

// Rows of random logits: flat, peaked, with ties, infinities, NaN, nothing.
std::vector<float> make_rows(int64_t width, fathom::harness::Random& random) {
  std::vector<float> logits(static_cast<size_t>(kRows * width));
  const auto row = [&](int64_t t) { return logits.data() + t * width; };
  for (int64_t t = 0; t < kRows; ++t) {
    const float spread = t == 0 ? 0.1f : t == 1 ? 20.0f : 4.0f;
    for (int64_t i = 0; i < width; ++i) row(t)[i] = spread * random.normal();
  }
  for (int64_t i = 0; i < width; ++i) row(2)[i] = std::round(row(2)[i]);
  for (int64_t i = 0; i < width; i += 3) row(3)[i] = kInf;
  for (int64_t i = 1; i < width; i += 2) row(4)[i] = -kInf;
  row(5)[width / 2] = kNan;
  std::fill_n(row(6), width, -kInf);
  return logits;
}

TEST(RowLogprobs, AreNearTheTrueOnesAndInOrder) {
  for (const Kernel<RowLogprobsArgs>& kernel : row_logprobs_kernels(harness::tested_device())) {
    for (const int64_t width : {1, 33, 4097, 129280}) {
      fathom::harness::Random random(static_cast<uint64_t>(width));
      const std::vector<float> logits = make_rows(width, random);
      const std::vector<int64_t> rows = {1, 0, 2, 4};
      std::vector<int32_t> ids;
      for (size_t k = 0; k < rows.size(); ++k) {
        ids.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(width))));
      }
      constexpr int64_t kTop = 20;
      const Outputs out = run(kernel, logits, width, rows, ids, kTop);
      for (size_t k = 0; k < rows.size(); ++k) {
        const float* x = logits.data() + rows[k] * width;
        const double best = *std::max_element(x, x + width);
        double sum = 0;
        for (int64_t i = 0; i < width; ++i) sum += std::exp(double{x[i]} - best);
        std::vector<int32_t> order(static_cast<size_t>(width));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int32_t a, int32_t b) { return x[a] > x[b]; });
        const float* got = out.logprobs.data() + k * (1 + kTop);
        const auto expect_value = [&](int32_t id, float value) {
          const double want = double{x[id]} - best - std::log(sum);
          if (std::isinf(want)) {
            EXPECT_EQ(value, -kInf);
          } else {
            EXPECT_NEAR(double{value}, want, 1e-7 * std::abs(want) + 1e-9) << kernel.name;
          }
        };
        expect_value(ids[rows.size() - 1 - k], got[0]);
        for (size_t j = 0; j < kTop; ++j) {
          const int32_t id = out.top[k * kTop + j];
          if (static_cast<int64_t>(j) >= width) {
            EXPECT_EQ(id, -1);
            continue;
          }
          ASSERT_EQ(id, order[j]) << kernel.name << ", width " << width << ", place " << j;
          expect_value(id, got[1 + j]);
        }
      }
    }
  }
}

void expect_bits_of_the_reference(const std::vector<int64_t>& widths) {
  const Kernel<RowLogprobsArgs>& reference = row_logprobs_kernels(DeviceKind::kCpu)[0];
  std::vector<int64_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0);
  for (const int64_t width : widths) {
    fathom::harness::Random random(static_cast<uint64_t>(width) + 50);
    const std::vector<float> logits = make_rows(width, random);
    for (const int64_t num_top : {int64_t{0}, int64_t{5}, kRowLogprobsTopMost}) {
      std::vector<int32_t> ids = {-3};
      while (std::ssize(ids) < kRows) {
        ids.push_back(static_cast<int32_t>(random.below(static_cast<uint64_t>(width))));
      }
      const std::span<const float> first(logits.data(), static_cast<size_t>(width));
      EXPECT_FALSE(log_softmax(first).has_nan);
      Outputs want = run(reference, logits, width, rows, ids, num_top);
      for (const Kernel<RowLogprobsArgs>& kernel : row_logprobs_kernels(harness::tested_device())) {
        const Outputs got = run(kernel, logits, width, rows, ids, num_top);
        EXPECT_EQ(got.top, want.top) << kernel.name << ", width " << width;
        for (size_t i = 0; i < got.logprobs.size(); ++i) {
          const float a = got.logprobs[i], b = want.logprobs[i];
          EXPECT_TRUE(std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
                      (std::isnan(a) && std::isnan(b)))
              << kernel.name << ", width " << width << ", value " << i << ": " << a << " " << b;
        }
      }
    }
  }
}

TEST(RowLogprobs, HaveTheBitsOfTheReference) { expect_bits_of_the_reference({1, 2, 1000, 4096}); }

TEST(RowLogprobs, OfAWholeVocabularyHaveThemToo) { expect_bits_of_the_reference({129280}); }

}  // namespace
}  // namespace fathom::kernels
