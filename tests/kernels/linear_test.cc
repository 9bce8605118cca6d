#include "kernels/linear/linear.h"

#include <memory>

#include "harness/kernel_harness.h"
#include "kernels/linear/rows.h"
#include "stored_weight.h"

namespace fathom::kernels {
namespace {

using fathom::harness::Random;
using harness::ElementKind;
using harness::KernelCase;
using harness::Output;
using harness::StoredWeight;
using harness::Tolerance;

struct Inputs {
  std::vector<Bf16> x;
  std::vector<StoredWeight> w;
};

struct LinearShape {
  int64_t num_tokens;
  int64_t cols;
  bool quantize_input;
  std::vector<std::pair<DType, int64_t>> targets;  // type and rows; odd targets have bf16 outputs
  Numerics numerics = Numerics::kReference;
  bool own_inputs = false;  // every target has its own
};

Output<LinearArgs> output(const LinearShape& shape, size_t k) {
  // Sums of products of unit size: fp32 against fp64.  The integer rows round e4m3 weights below
  // 2^-3, which is a quarter of all codes, to multiples of 2^-6: 8e-6 of a sum of random codes.
  const bool int8 = shape.numerics == Numerics::kInt8;
  const Tolerance close = {
      .rel = int8 ? 2e-5 : 1e-5, .abs = int8 ? 1e-4 : 1e-5, .min_equal_share = 0};
  const Tolerance rounded = {
      .rel = 0x1p-7, .abs = close.abs, .min_equal_share = int8 ? 0.98 : 0.999};
  const bool is_bf16 = k % 2 == 1;
  // Rows of a multiple of four outputs stay aligned to four, as a GPU likes them.
  const int64_t rows = shape.targets[k].second;
  const int64_t stride = rows + static_cast<int64_t>(k) * (rows % 4 == 0 ? 4 : 3);
  return {.name = is_bf16 ? "y" : "y_f32",
          .kind = is_bf16 ? ElementKind::kBf16 : ElementKind::kF32,
          .row_elements = stride,
          .tolerance = is_bf16 ? rounded : close,
          .bind = [k, stride, is_bf16](LinearArgs& args, std::byte* data) {
            LinearTarget& target = args.targets[k];
            target.y = is_bf16 ? reinterpret_cast<Bf16*>(data) : nullptr;
            target.y_f32 = is_bf16 ? nullptr : reinterpret_cast<float*>(data);
            target.y_stride = stride;
          }};
}

KernelCase<LinearArgs> make_case(const LinearShape& shape, uint64_t seed = 1) {
  Random random(seed);
  auto inputs = std::make_shared<Inputs>();
  // Inputs one after the other if they fill a GPU's chunks of 64, else with gaps.
  const int64_t gap = shape.cols % 64 == 0 ? 0 : 3;
  const int64_t step = shape.own_inputs ? shape.cols + gap : 0;
  const int64_t x_stride = shape.cols + 5 + step * static_cast<int64_t>(shape.targets.size());
  inputs->x = random.bf16_normals(shape.num_tokens * x_stride + 1);
  KernelCase<LinearArgs> c;
  c.args = {.x = inputs->x.data(),
            .x_stride = x_stride,
            .num_tokens = shape.num_tokens,
            .x_target_step = step,
            .quantize_input = shape.quantize_input,
            .numerics = shape.numerics,
            .num_targets = static_cast<int32_t>(shape.targets.size()),
            .targets = {},
            .stream = nullptr};
  for (size_t k = 0; k < shape.targets.size(); ++k) {
    const auto [dtype, rows] = shape.targets[k];
    inputs->w.push_back(harness::random_weight(random, dtype, rows, shape.cols));
    c.args.targets[k].w = inputs->w.back().matrix;
    c.outputs.push_back(output(shape, k));
    c.name += std::string(dtype_name(dtype)) + " " + std::to_string(rows) + " ";
  }
  // The vector may have moved the weights while it grew.
  for (size_t k = 0; k < inputs->w.size(); ++k) {
    c.args.targets[k].w.data = inputs->w[k].data.data();
    c.args.targets[k].w.scale = inputs->w[k].scale.data();
  }
  c.name += "x " + std::to_string(shape.cols) + ", " + std::to_string(shape.num_tokens) +
            " tokens" + (shape.quantize_input ? ", quantized" : "") +
            (shape.numerics == Numerics::kInt8 ? ", int8" : "") +
            (shape.own_inputs ? ", own inputs" : "");
  c.num_rows = shape.num_tokens;
  c.slice = [](LinearArgs& args, int64_t first, int64_t count) {
    args.x += first * args.x_stride;
    args.num_tokens = count;
  };
  c.storage = inputs;
  return c;
}

constexpr DType kFp8 = DType::kF8E4M3, kFp4 = DType::kI8, kBf16 = DType::kBf16;

std::vector<KernelCase<LinearArgs>> all_cases() {
  std::vector<KernelCase<LinearArgs>> cases;
  // Token counts around every kernel's limits, on widths around one tile.
  for (const int64_t tokens : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14}) {
    cases.push_back(make_case({tokens, 64, true, {{kFp8, 3}, {kFp4, 33}, {kFp8, 70}, {kFp4, 8}}}));
  }
  for (const int64_t cols : {32, 96, 128, 256, 512, 544, 1280, 2304, 5120}) {
    cases.push_back(make_case({7, cols, true, {{kFp8, 41}, {kFp4, 37}}}));
    cases.push_back(make_case({9, cols, false, {{kFp8, 33}, {kBf16, 35}, {kFp4, 6}}}));
  }
  // Any width is possible when nothing is in blocks of 32.
  for (const int64_t cols : {1, 15, 16, 17, 100, 520}) {
    for (const int64_t tokens : {4, 5, 6, 11}) {
      cases.push_back(make_case({tokens, cols, false, {{kBf16, 1}, {kBf16, 34}}}));
    }
  }
  // More tokens than a tile has, and than a slab has; many rows, so that threads share.
  cases.push_back(make_case({64, 1280, true, {{kFp8, 64}, {kFp4, 64}}}));
  cases.push_back(make_case({197, 256, true, {{kFp4, 65}, {kBf16, 40}}}));
  cases.push_back(make_case({512, 160, true, {{kFp8, 32}}}));
  cases.push_back(make_case({600, 64, false, {{kFp8, 7}, {kBf16, 5}}}));
  cases.push_back(make_case({2, 2304, true, {{kFp4, 600}, {kFp8, 600}}}));
  // Enough tokens and rows for a GPU's kernel of large products, with parts of unequal length.
  cases.push_back(make_case({300, 320, true, {{kFp8, 2816}, {kFp4, 200}}}));
  cases.push_back(make_case({385, 576, false, {{kFp4, 1100}, {kBf16, 1100}}}));
  // Its tiles of 16 to 64 tokens, with the columns of a tile in one block and in several.
  for (const int64_t tokens : {15, 31, 60}) {
    cases.push_back(make_case({tokens, 672, true, {{kFp8, 150}, {kFp4, 130}}}));
  }
  cases.push_back(make_case({15, 96, false, {{kBf16, 17000}}}));
  cases.push_back(make_case({40, 96, true, {{kFp8, 17000}}}));
  // Inputs of their own, few and too many tokens for one loop over them.
  for (const int64_t tokens : {1, 5, 16, 17}) {
    cases.push_back(make_case({tokens,
                               160,
                               tokens != 5,
                               {{kFp8, 70}, {kFp4, 33}, {kFp8, 40}, {kBf16, 9}},
                               Numerics::kReference,
                               true}));
    cases.push_back(make_case({tokens,
                               192,
                               tokens != 5,
                               {{kFp8, 70}, {kFp8, 44}, {kFp8, 40}, {kFp4, 36}},
                               Numerics::kReference,
                               true}));
  }
  return cases;
}

// What a GPU with 132 multiprocessors has its ways for, each with the least work that takes it:
// tiles of 8 to 128 tokens, inputs as they are and stored ones, the parts of the columns in 8, 4, 2
// and 1 blocks, more chunks of a block than its ring has stages, four outputs written at once.
std::vector<KernelCase<LinearArgs>> small_gpu_cases() {
  std::vector<KernelCase<LinearArgs>> cases;
  const auto add = [&](int64_t tokens, int64_t cols, int64_t rows) {
    cases.push_back(make_case(
        {tokens, cols, true, {{kFp8, rows}, {kFp4, rows}, {kBf16, rows + 2}, {kFp8, rows}}}));
  };
  for (const int64_t tokens : {1, 7, 15, 31}) add(tokens, 160, 68);
  cases.push_back(
      make_case({12, 128, true, {{kFp8, 70}, {kFp8, 44}, {kFp4, 36}}, Numerics::kReference, true}));
  for (const int64_t tokens : {7, 15, 31, 60, 130}) add(tokens, 5120, 68);
  add(3, 576, 9 * 128);
  add(3, 160, 17 * 128);
  add(3, 160, 34 * 128);
  add(7, 320, 34 * 128);
  for (const DType dtype : {kFp8, kFp4, kBf16}) {
    for (const int64_t tokens : {12, 20, 40}) {
      cases.push_back(make_case({tokens, 160, false, {{dtype, 8}, {dtype, 132 * 128}}}));
    }
    cases.push_back(make_case({130, 640, false, {{dtype, 8}, {dtype, 33 * 128}}}));
  }
  return cases;
}

std::vector<KernelCase<LinearArgs>> int8_cases() {
  std::vector<KernelCase<LinearArgs>> cases;
  const auto add = [&](int64_t tokens, int64_t cols,
                       std::vector<std::pair<DType, int64_t>> targets) {
    cases.push_back(make_case({tokens, cols, true, std::move(targets), Numerics::kInt8}));
  };
  // Token counts around what goes straight through, a register block and a pair of AMX tiles.
  for (const int64_t tokens : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 32, 33, 47}) {
    add(tokens, 64, {{kFp8, 3}, {kFp4, 33}, {kFp8, 70}, {kFp4, 8}});
  }
  for (const int64_t cols : {32, 96, 128, 160, 256, 544, 1024, 1056, 2304, 5120}) {
    for (const int64_t tokens : {1, 4, 7, 8, 11}) add(tokens, cols, {{kFp8, 41}, {kFp4, 37}});
  }
  for (const int64_t tokens : {1, 3, 16, 17}) {
    cases.push_back(make_case(
        {tokens, 160, false, {{kFp8, 70}, {kFp4, 33}, {kFp8, 600}}, Numerics::kInt8, true}));
  }
  // More columns than are packed at a time.
  for (const int64_t tokens : {4, 8}) add(tokens, 8224, {{kFp8, 35}, {kFp4, 19}});
  // More tokens than a tile has, than a slab has; many rows, so that threads share.
  add(64, 1280, {{kFp8, 64}, {kFp4, 64}});
  add(197, 256, {{kFp4, 65}});
  add(1030, 64, {{kFp8, 33}});
  add(2, 2304, {{kFp4, 600}, {kFp8, 600}});
  // Enough tokens for AMX in both formats, some of them not a whole tile, groups in odd numbers.
  for (const int64_t cols : {32, 96, 512, 1056}) add(53, cols, {{kFp8, 41}, {kFp4, 37}});
  // wo_a: not quantized in numerics `reference`.
  cases.push_back(make_case({5, 256, false, {{kFp8, 48}}, Numerics::kInt8}));
  return cases;
}

class LinearTest : public harness::IsaTest {};

// Some instruction sets only have integer products of their own.
bool has_lane_rows(Isa isa) { return isa != Isa::kAmx && isa != Isa::kAvxVnni; }

TEST_P(LinearTest, EveryKernelMatchesTheReferenceAndKeepsARowsBits) {
  if (!has_lane_rows(GetParam())) GTEST_SKIP() << "no row of its own in these numerics";
  harness::expect_rows_match(linear_kernels, GetParam(), all_cases());
}

TEST_P(LinearTest, SmallShapesReachEveryGpuKernel) {
  if (harness::tested_device() == DeviceKind::kCpu) GTEST_SKIP() << "skipped: a GPU's choices";
  auto cases = small_gpu_cases();
  if (GetParam() == Isa::kReference) cases.resize(5);  // it has one way only
  harness::expect_rows_close(linear_kernels, GetParam(), cases);
}

TEST_P(LinearTest, EveryIntegerKernelMatchesTheReferenceAndKeepsARowsBits) {
  if (GetParam() == Isa::kReference) GTEST_SKIP() << "nothing to compare";
  if (harness::tested_device() != DeviceKind::kCpu) GTEST_SKIP() << "numerics of CPUs";
  harness::expect_rows_match(linear_kernels, GetParam(), int8_cases());
}

void expect_bits_of_plain(const Kernel<LinearArgs>& fast, const KernelCase<LinearArgs>& c) {
  const harness::CaseRunner<LinearArgs> runner(c);
  const auto& plain = select(linear_kernels(DeviceKind::kCpu), Isa::kPlain, c.args);
  runner.expect_same_bits(fast, runner.run(plain, 1, 0, c.num_rows),
                          runner.run(fast, 2, 0, c.num_rows), 0, "from the plain kernel");
}

// The lane rule fixes every rounding, so a result can move between machines.
TEST_P(LinearTest, HasTheBitsOfThePlainKernel) {
  if (GetParam() <= Isa::kPlain) GTEST_SKIP() << "nothing to compare";
  auto cases = int8_cases();
  if (has_lane_rows(GetParam())) {
    for (auto& c : all_cases()) cases.push_back(std::move(c));
  }
  for (const KernelCase<LinearArgs>& c : cases) {
    const auto& fast = select(linear_kernels(DeviceKind::kCpu), GetParam(), c.args);
    ASSERT_EQ(fast.isa, GetParam()) << c.name;
    expect_bits_of_plain(fast, c);
  }
}

// The AMX row with its tile operations in C++: what differs on a machine with AMX is those alone.
TEST(Linear, EmulatedAmxMatchesTheReferenceAndHasTheBitsOfThePlainKernel) {
  const std::string missing = missing_feature(Isa::kAvx512);
  if (!missing.empty()) GTEST_SKIP() << "skipped: no " << missing;
  const Kernel<LinearArgs> kernel = {"linear.int8_amx_emulated", Isa::kAvx512, int8_linear_supports,
                                     linear_int8_amx_emulated};
  for (const KernelCase<LinearArgs>& c : int8_cases()) {
    harness::expect_kernel_matches(linear_kernels(DeviceKind::kCpu).front(), kernel, c);
    expect_bits_of_plain(kernel, c);
  }
}

// An identity matrix shows the quantized input itself.
TEST_P(LinearTest, QuantizesInputsExactlyAsTheReference) {
  if (!has_lane_rows(GetParam())) GTEST_SKIP() << "no row of its own in these numerics";
  constexpr int64_t kCols = 64, kTokens = 1500;
  Random random(7);
  auto inputs = std::make_shared<Inputs>();
  std::vector<uint8_t> identity(kCols * kCols, 0);
  for (size_t i = 0; i < kCols; ++i) identity[i * (kCols + 1)] = 0x38;
  StoredWeight w;
  w.data = fathom::harness::OddBytes<uint8_t>(identity);
  w.scale = fathom::harness::OddBytes<uint8_t>(std::vector<uint8_t>(4, 127));
  inputs->w.push_back(std::move(w));
  for (int64_t t = 0; t < kTokens; ++t) {
    // Any sign and mantissa; exponents within 0 to 31 of the row's greatest, or all tiny.
    const int64_t top = t < 10 ? t : 64 + random.below(180);
    const int64_t spread = 1 + random.below(32);
    for (int64_t i = 0; i < kCols; ++i) {
      const int64_t exponent = std::max<int64_t>(0, top - random.below(spread));
      const int64_t bits = random.below(2) << 15 | exponent << 7 | random.below(128);
      inputs->x.push_back(Bf16{static_cast<uint16_t>(bits)});
    }
  }
  KernelCase<LinearArgs> c;
  c.name = "identity";
  c.args = {.x = inputs->x.data(),
            .x_stride = kCols,
            .num_tokens = kTokens,
            .quantize_input = true,
            .num_targets = 1,
            .targets = {},
            .stream = nullptr};
  c.args.targets[0].w = {.dtype = kFp8,
                         .data = inputs->w[0].data.data(),
                         .scale = inputs->w[0].scale.data(),
                         .rows = kCols,
                         .cols = kCols};
  c.num_rows = kTokens;
  c.slice = [](LinearArgs& args, int64_t first, int64_t count) {
    args.x += first * args.x_stride;
    args.num_tokens = count;
  };
  Output<LinearArgs> y = output({kTokens, kCols, true, {{kFp8, kCols}}}, 0);
  y.tolerance = harness::kBitEqual;
  c.outputs.push_back(y);
  c.storage = inputs;
  harness::expect_rows_match(linear_kernels, GetParam(), {c});
}

TEST(Linear, FastKernelsRefuseBlockedFormatsOfOddWidth) {
  const KernelCase<LinearArgs> odd = make_case({1, 48, false, {{kBf16, 2}}});
  LinearArgs args = odd.args;
  for (const auto& kernel : linear_kernels(DeviceKind::kCpu)) {
    EXPECT_EQ(kernel.supports(args), kernel.supports != int8_linear_supports) << kernel.name;
  }
  args.quantize_input = true;
  for (const auto& kernel : linear_kernels(DeviceKind::kCpu).subspan(1)) {
    EXPECT_FALSE(kernel.supports(args)) << kernel.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, LinearTest, harness::all_isas_and_amx(), harness::isa_test_name);

}  // namespace
}  // namespace fathom::kernels
