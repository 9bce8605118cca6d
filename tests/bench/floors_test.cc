#include "bench/floors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/op_work.h"
#include "model/presets.h"

namespace fathom::bench {
namespace {

using kernels::Numerics;

constexpr Peaks kVectors = {.dram_read_gb_s = 100, .int8_gop_s = 10'000, .fp32_gflop_s = 2'500};
constexpr Peaks kAmx = {
    .dram_read_gb_s = 100, .int8_gop_s = 10'000, .amx_gop_s = 50'000, .fp32_gflop_s = 2'500};

model::ModelConfig slice(int experts) {
  auto config = model::release_slice(4, experts, 1 << 20, 0);
  EXPECT_TRUE(config.has_value());
  return *std::move(config);
}

TEST(Floors, AddUpOperationsAtThePeaksOfTheirUnits) {
  const Work work = {.int8_ops = 1e12, .fp8_ops = 2e12, .fp32_ops = 5e11, .bytes = 1e9};
  EXPECT_DOUBLE_EQ(floor_s(work, kVectors, Numerics::kInt8), 0.1 + 0.4 + 0.2);
  EXPECT_DOUBLE_EQ(floor_s(work, kVectors, Numerics::kReference), 0.1 + 0.8 + 0.2);
  const Work read = work + Work{.bytes = 199e9};
  EXPECT_DOUBLE_EQ(floor_s(read, kVectors, Numerics::kInt8), 2);
}

TEST(Floors, AmxTakesItsShareOfTheOperations) {
  const Work work = {.int8_ops = 1e12,
                     .fp8_ops = 2e12,
                     .fp32_ops = 5e11,
                     .bytes = 1e9,
                     .amx_int8_ops = 5e11,
                     .amx_fp8_ops = 2e12};
  EXPECT_DOUBLE_EQ(amx_floor_s(work, kAmx, Numerics::kInt8), 0.05 + 4.5 / 50 + 0.2);
  EXPECT_EQ(amx_floor_s(work, kAmx, Numerics::kReference), 0);
  EXPECT_EQ(amx_floor_s(work, kVectors, Numerics::kInt8), 0);
  EXPECT_DOUBLE_EQ(floor_s(work, kAmx, Numerics::kInt8), 0.7) << "it is the vectors'";
}

TEST(Floors, OnlyProductsOfManyTokensAreForAmx) {
  EXPECT_EQ(amx_floor_s(decode_work(slice(32), 8, 256, 40), kAmx, Numerics::kInt8), 0);
  const Work dense = prefill_work(slice(32), 512, PrefillMode::kExact);  // 96 tokens an expert
  EXPECT_EQ(dense.amx_fp8_ops, dense.fp8_ops);
  EXPECT_GT(dense.amx_int8_ops, 0.9 * dense.int8_ops);
  EXPECT_LT(dense.amx_int8_ops, dense.int8_ops) << "index keys";
  const Work sparse = prefill_work(slice(384), 512, PrefillMode::kExact);  // 8 tokens
  EXPECT_EQ(sparse.amx_fp8_ops, sparse.fp8_ops);
  EXPECT_EQ(sparse.amx_int8_ops, 0);
}

// An expert of 16 tokens, one of 15 and one of none.
TEST(OpWork, CountsTheTokensOfEachExpert) {
  const auto matrix = [](int64_t rows, int64_t cols) {
    return kernels::WeightMatrix{.dtype = DType::kI8, .rows = rows, .cols = cols};
  };
  const kernels::ExpertWeights one = {matrix(32, 64), matrix(32, 64), matrix(64, 32)};
  const std::vector<kernels::ExpertWeights> experts(3, one);
  kernels::MoeExpertsArgs args = {};
  std::vector<int32_t> expert(31, 0);
  std::fill_n(expert.begin() + 16, 15, 2);
  args.expert = expert.data();
  args.experts = experts.data();
  args.shared = one;
  for (kernels::WeightMatrix* w : {&args.shared.w1, &args.shared.w3, &args.shared.w2}) {
    w->dtype = DType::kF8E4M3;
  }
  args.num_tokens = 31;
  args.num_experts = 3;
  args.k = 1;
  const kernels::OpWork work = op_work(args);
  constexpr double kOps = 2 * 3 * 32 * 64;  // of a token
  EXPECT_EQ(work.fp4_ops, 31 * kOps);
  EXPECT_EQ(work.amx_fp4_ops, 16 * kOps);
  EXPECT_EQ(work.fp8_ops, 31 * kOps);
  EXPECT_EQ(work.amx_fp8_ops, work.fp8_ops);
  EXPECT_EQ(work.bytes, 3 * 32 * 64 * (2 * (0.5 + 1.0 / 32) + 1 + 1.0 / 1024));
}

}  // namespace
}  // namespace fathom::bench
