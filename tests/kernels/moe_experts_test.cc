#include <algorithm>
#include <cmath>
#include <memory>

#include "harness/kernel_harness.h"
#include "kernels/moe/moe.h"
#include "stored_weight.h"

namespace fathom::kernels {
namespace {

using fathom::harness::Random;
using harness::ElementKind;
using harness::KernelCase;
using harness::StoredWeight;

struct ExpertsShape {
  int64_t num_tokens;
  int64_t num_experts;
  int64_t k;
  int64_t hidden;
  int64_t width;
  DType routed = DType::kI8;
  DType shared = DType::kF8E4M3;
  float limit = 10;
  Numerics numerics = Numerics::kReference;
  bool spread = false;  // each input its own power of two
};

struct Inputs {
  std::vector<Bf16> x;
  std::vector<int32_t> expert;
  std::vector<float> weight;
  std::vector<std::unique_ptr<StoredWeight>> stored;
  std::vector<ExpertWeights> experts;
};

ExpertWeights make_expert(Inputs& inputs, Random& random, const ExpertsShape& shape, DType dtype) {
  const auto store = [&](int64_t rows, int64_t cols) {
    inputs.stored.push_back(
        std::make_unique<StoredWeight>(harness::random_weight(random, dtype, rows, cols)));
    StoredWeight& w = *inputs.stored.back();
    w.matrix.data = w.data.data();
    w.matrix.scale = w.scale.data();
    return w.matrix;
  };
  return {.w1 = store(shape.width, shape.hidden),
          .w3 = store(shape.width, shape.hidden),
          .w2 = store(shape.hidden, shape.width)};
}

// k different experts in ascending order.
void pick_experts(Inputs& inputs, Random& random, const ExpertsShape& shape) {
  std::vector<int32_t> picks;
  while (static_cast<int64_t>(picks.size()) < shape.k) {
    const auto e = static_cast<int32_t>(random.below(shape.num_experts));
    if (std::find(picks.begin(), picks.end(), e) == picks.end()) picks.push_back(e);
  }
  std::sort(picks.begin(), picks.end());
  inputs.expert.insert(inputs.expert.end(), picks.begin(), picks.end());
  for (int64_t j = 0; j < shape.k; ++j) {
    inputs.weight.push_back(static_cast<float>(random.uniform()));
  }
}

KernelCase<MoeExpertsArgs> make_experts_case(const ExpertsShape& shape, float deviation = 2) {
  Random random(11);
  auto inputs = std::make_shared<Inputs>();
  inputs->x = random.bf16_normals(shape.num_tokens * shape.hidden + 1, deviation);
  if (shape.spread) {
    for (Bf16& v : inputs->x) {
      v = to_bf16(std::ldexp(to_float(v), -static_cast<int>(random.below(18))));
    }
  }
  for (int64_t t = 0; t < shape.num_tokens; ++t) pick_experts(*inputs, random, shape);
  for (int64_t e = 0; e < shape.num_experts; ++e) {
    inputs->experts.push_back(make_expert(*inputs, random, shape, shape.routed));
  }
  KernelCase<MoeExpertsArgs> c;
  c.name = std::to_string(shape.num_tokens) + " tokens, " + std::to_string(shape.k) + " of " +
           std::to_string(shape.num_experts) + " experts " + std::to_string(shape.hidden) + " x " +
           std::to_string(shape.width) + " " + std::string(dtype_name(shape.routed)) + " " +
           std::string(dtype_name(shape.shared));
  c.args = {.x = inputs->x.data(),
            .expert = inputs->expert.data(),
            .weight = inputs->weight.data(),
            .experts = inputs->experts.data(),
            .routed = shape.routed,
            .shared = make_expert(*inputs, random, shape, shape.shared),
            .y = nullptr,
            .num_tokens = shape.num_tokens,
            .num_experts = shape.num_experts,
            .k = shape.k,
            .hidden = shape.hidden,
            .width = shape.width,
            .limit = shape.limit,
            .numerics = shape.numerics,
            .stream = nullptr};
  c.num_rows = shape.num_tokens;
  c.slice = [](MoeExpertsArgs& args, int64_t first, int64_t count) {
    args.x += first * args.hidden;
    args.expert += first * args.k;
    args.weight += first * args.k;
    args.num_tokens = count;
  };
  // A gate or up value that rounds to the other bf16, and then to the other e4m3, moves a sum a
  // little.  With int8 it may be the greatest of a group, and then moves the group's scale.
  const bool int8 = shape.numerics == Numerics::kInt8;
  c.outputs.push_back(
      {.name = "y",
       .kind = ElementKind::kBf16,
       .row_elements = shape.hidden,
       .tolerance = {.rel = 0x1p-6, .abs = 0.02, .min_equal_share = int8 ? 0.8 : 0.99},
       .bind = [](MoeExpertsArgs& args, std::byte* data) {
         args.y = reinterpret_cast<Bf16*>(data);
       }});
  c.storage = inputs;
  return c;
}

std::vector<KernelCase<MoeExpertsArgs>> all_cases(Numerics numerics) {
  constexpr DType kFp8 = DType::kF8E4M3, kFp4 = DType::kI8, kBf16 = DType::kBf16;
  std::vector<KernelCase<MoeExpertsArgs>> cases;
  const auto make_case = [&](ExpertsShape shape, float deviation = 2) {
    shape.numerics = numerics;
    return make_experts_case(shape, deviation);
  };
  for (const int64_t tokens : {0, 1, 2, 3, 5, 9, 17}) {
    cases.push_back(make_case({tokens, 6, 2, 64, 32}));
    cases.push_back(make_case({tokens, 16, 3, 256, 96}));
  }
  // All tokens on one expert; more than a tile and than a slab of them.
  cases.push_back(make_case({13, 1, 1, 96, 64}));
  cases.push_back(make_case({130, 2, 2, 64, 64}));
  cases.push_back(make_case({520, 4, 2, 64, 32}));
  // With many experts slabs are larger: one, and two.
  cases.push_back(make_case({900, 60, 2, 32, 32}));
  cases.push_back(make_case({2100, 100, 2, 32, 32}));
  // A GPU's tiles of 16 to 128 tokens, rows that fill no tile, and columns that fill no chunk.
  for (const int64_t tokens : {33, 70, 150}) cases.push_back(make_case({tokens, 3, 2, 544, 96}));
  cases.push_back(make_case({300, 2, 1, 160, 224}));
  // Down in three parts, the last one smaller.
  cases.push_back(make_case({512, 9, 7, 1440, 32}));
  // Other formats, no limit, and widths beyond one tile.
  cases.push_back(make_case({6, 5, 2, 128, 64, kFp8, kFp4, 0}));
  if (numerics == Numerics::kReference) {
    cases.push_back(make_case({6, 5, 2, 128, 64, kBf16, kFp8}));
  }
  cases.push_back(make_case({3, 9, 6, 1280, 544, kFp4, kFp8}));
  // Inputs of one group across all of e4m3's exponents: subnormals, zeros and full ones.
  for (const int64_t tokens : {1, 3, 9}) {
    cases.push_back(make_case({tokens, 3, 2, 544, 96, kFp4, kFp8, 10, numerics, true}));
  }
  // Gates far out on both sides.
  cases.push_back(make_case({8, 4, 2, 64, 64, kFp4, kFp8, 10}, 400));
  cases.back().outputs[0].tolerance.abs = 1;
  return cases;
}

// What a GPU with 132 multiprocessors has its ways for, each with the least work that takes it:
// tiles of 8 to 32 tokens in any formats, with 8, 4, 2 and 1 parts of the columns, then those of 16
// to 128 tokens of fp4 experts beside an fp8 one, with 8 parts and with 1.
std::vector<KernelCase<MoeExpertsArgs>> small_gpu_cases() {
  constexpr DType kFp8 = DType::kF8E4M3, kFp4 = DType::kI8, kBf16 = DType::kBf16;
  std::vector<KernelCase<MoeExpertsArgs>> cases;
  for (const ExpertsShape& s : std::initializer_list<ExpertsShape>{
           {5, 6, 2, 160, 96, kFp8, kFp4, 0},
           {6, 5, 2, 160, 96, kBf16, kFp8},
           {13, 6, 2, 160, 96, kFp8, kFp4},
           {60, 3, 2, 160, 96, kBf16, kFp8},
           {8, 16, 3, 160, 96},
           {8, 80, 3, 160, 96},
           {8, 80, 6, 288, 160},
           {9, 6, 2, 160, 96},
           {40, 3, 1, 160, 96},
           {33, 3, 2, 160, 96},
           {70, 3, 2, 160, 96},
           {40, 80, 2, 160, 96},
           {130, 20, 2, 640, 288},
           {130, 20, 4, 640, 288},
           {130, 12, 5, 640, 256},
       }) {
    cases.push_back(make_experts_case(s));
  }
  return cases;
}

class MoeExpertsTest : public harness::IsaTest {};

TEST_P(MoeExpertsTest, EveryKernelMatchesTheReferenceAndKeepsARowsBits) {
  if (GetParam() != Isa::kAmx) {
    harness::expect_rows_match(moe_experts_kernels, GetParam(), all_cases(Numerics::kReference));
  }
  if (GetParam() != Isa::kReference && harness::tested_device() == DeviceKind::kCpu) {
    harness::expect_rows_match(moe_experts_kernels, GetParam(), all_cases(Numerics::kInt8));
  }
}

TEST_P(MoeExpertsTest, SmallShapesReachEveryGpuKernel) {
  if (harness::tested_device() == DeviceKind::kCpu) GTEST_SKIP() << "skipped: a GPU's choices";
  auto cases = small_gpu_cases();
  if (GetParam() == Isa::kReference) cases.resize(3);  // it has one way only
  harness::expect_rows_close(moe_experts_kernels, GetParam(), cases);
}

TEST_P(MoeExpertsTest, HasTheBitsOfThePlainKernel) {
  if (GetParam() <= Isa::kPlain) GTEST_SKIP() << "nothing to compare";
  const auto table = moe_experts_kernels(DeviceKind::kCpu);
  auto cases = all_cases(Numerics::kInt8);
  if (GetParam() != Isa::kAmx) {
    for (auto& c : all_cases(Numerics::kReference)) cases.push_back(std::move(c));
  }
  for (const KernelCase<MoeExpertsArgs>& c : cases) {
    const harness::CaseRunner<MoeExpertsArgs> runner(c);
    const auto& plain = select(table, Isa::kPlain, c.args);
    const auto& fast = select(table, GetParam(), c.args);
    ASSERT_EQ(fast.isa, GetParam()) << c.name;
    runner.expect_same_bits(fast, runner.run(plain, 1, 0, c.num_rows),
                            runner.run(fast, 2, 0, c.num_rows), 0, "from the plain kernel");
  }
}

// Weights of experts without tokens stay on disk: they must not be read.
TEST_P(MoeExpertsTest, TouchesOnlyExpertsThatHaveTokens) {
  if (GetParam() == Isa::kAmx) GTEST_SKIP() << "the same driver as with AVX-512";
  KernelCase<MoeExpertsArgs> c = make_experts_case({9, 8, 2, 64, 32});
  auto* inputs = static_cast<Inputs*>(c.storage.get());
  for (size_t i = 0; i < inputs->expert.size(); i += 2) {
    inputs->expert[i] = 1;
    inputs->expert[i + 1] = 6;
  }
  for (const size_t e : {0, 2, 3, 4, 5, 7}) {
    inputs->experts[e].w1.data = inputs->experts[e].w2.data = inputs->experts[e].w3.data = nullptr;
  }
  harness::expect_rows_match(moe_experts_kernels, GetParam(), {c});
}

INSTANTIATE_TEST_SUITE_P(Rows, MoeExpertsTest, harness::all_isas_and_amx(), harness::isa_test_name);

}  // namespace
}  // namespace fathom::kernels
