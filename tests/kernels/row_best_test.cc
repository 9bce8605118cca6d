// Greedy choice: the lowest id of the greatest logit, whatever the values.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "harness/kernel_harness.h"
#include "harness/random_values.h"
#include "kernels/ops.h"

namespace fathom::kernels {
namespace {

TEST(RowBest, IsTheLowestOfTheGreatest) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr int64_t kRows = 9;
  for (const Kernel<RowBestArgs>& kernel : row_best_kernels(harness::tested_device())) {
    for (const int64_t width : {1, 15, 16, 1000, 4096, 129280}) {
      fathom::harness::Random random(32);
      std::vector<float> a(static_cast<size_t>(kRows * width)), b(a.size());
      std::vector<int64_t> a_row;
      for (float& x : a) x = static_cast<float>(random.below(2000)) / 16 - 100;  // many are equal
      for (float& x : b) x = static_cast<float>(random.below(3)) - 1;
      for (int64_t t = 0; t < kRows; ++t) a_row.push_back((t * 4 + 1) % kRows);
      const auto at = [&](std::vector<float>& x, int64_t row, int64_t i) -> float& {
        return x[static_cast<size_t>(row * width + i)];
      };
      for (int64_t i = 0; i < width; ++i) at(b, 0, i) = -kInf;
      at(a, a_row[1], width / 2) = std::numeric_limits<float>::quiet_NaN();
      at(b, 2, width - 1) = kInf;
      for (int64_t i = 0; i < width; ++i) at(a, a_row[3], i) = i % 2 == 0 ? -0.0f : 0.0f;
      for (int64_t i = 0; i < width; ++i) at(b, 3, i) = i == 0 ? -0.0f : 0.0f;
      for (int64_t i = 0; i < width; ++i) at(b, 4, i) -= 1e6f;
      std::vector<int32_t> best(kRows, -7);
      harness::run_kernel(kernel,
                          {a.data(), a_row.data(), b.data(), best.data(), kRows, width, nullptr});
      for (int64_t t = 0; t < kRows; ++t) {
        int32_t want = -1;
        float greatest = -kInf;
        bool has_nan = false;
        for (int64_t i = 0; i < width; ++i) {
          const float s = at(a, a_row[static_cast<size_t>(t)], i) + at(b, t, i);
          has_nan = has_nan || std::isnan(s);
          if (s > greatest) greatest = s, want = static_cast<int32_t>(i);
        }
        EXPECT_EQ(best[static_cast<size_t>(t)], has_nan ? -1 : want)
            << kernel.name << ", width " << width << ", row " << t;
      }
      // Alone, a row gives what it gives with zeros.
      std::vector<int32_t> alone(kRows, -7), with_zeros(kRows, -8);
      const std::vector<float> zeros(a.size());
      std::iota(a_row.begin(), a_row.end(), 0);
      harness::run_kernel(
          kernel, {a.data(), a_row.data(), zeros.data(), with_zeros.data(), kRows, width, nullptr});
      harness::run_kernel(kernel,
                          {a.data(), nullptr, nullptr, alone.data(), kRows, width, nullptr});
      EXPECT_EQ(alone, with_zeros) << kernel.name << ", width " << width;
    }
  }
}

}  // namespace
}  // namespace fathom::kernels
