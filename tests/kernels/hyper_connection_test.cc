// The hyper-connection operations: every row against the reference.
#include "kernels/hyper_connection/hyper_connection.h"

#include <gtest/gtest.h>

#include <memory>

#include "harness/kernel_harness.h"
#include "harness/random_values.h"

namespace fathom::kernels {
namespace {

using fathom::harness::OddBytes;
using fathom::harness::Random;
using harness::ElementKind;
using harness::expect_rows_match;
using harness::KernelCase;
using harness::Tolerance;

class HyperConnection : public harness::IsaTest {};
INSTANTIATE_TEST_SUITE_P(Rows, HyperConnection, harness::all_isas(), harness::isa_test_name);

struct Shape {
  int64_t tokens, copies, hidden;
};
std::string shape_name(const Shape& s) {
  return "[" + std::to_string(s.tokens) + ", " + std::to_string(s.copies) + ", " +
         std::to_string(s.hidden) + "]";
}
constexpr Shape kShapes[] = {{0, 4, 64},   {1, 1, 1},    {3, 2, 7},   {5, 3, 33},
                             {7, 8, 48},   {1, 4, 256},  {13, 4, 96}, {2, 4, 100},
                             {26, 4, 256}, {9, 4, 5120}, {70, 4, 96}};

KernelCase<HcMixArgs> mix_case(const Shape& s) {
  struct Storage {
    std::vector<Bf16> x;
    OddBytes<float> fn, base, scale;
  };
  auto storage = std::make_shared<Storage>();
  Random random(71);
  const int64_t m = s.copies;
  const int64_t n = m * s.hidden;
  const int64_t num_y = (2 + m) * m;
  storage->x = random.bf16_normals(s.tokens * n);
  storage->fn = OddBytes<float>(random.normals(num_y * n, 1 / std::sqrt(static_cast<float>(n))));
  storage->base = OddBytes<float>(random.normals(num_y));
  storage->scale = OddBytes<float>({0.5f, 0.75f, 2.0f});
  KernelCase<HcMixArgs> c;
  c.name = "hc_mix " + shape_name(s);
  c.args = {storage->x.data(),
            storage->fn.data(),
            storage->base.data(),
            storage->scale.data(),
            nullptr,
            nullptr,
            nullptr,
            s.tokens,
            m,
            s.hidden,
            20,
            1e-20f,
            1e-6f,
            nullptr};
  c.num_rows = s.tokens;
  c.slice = [](HcMixArgs& args, int64_t first, int64_t count) {
    args.x += first * args.copies * args.hidden;
    args.num_tokens = count;
  };
  const Tolerance close = {.rel = 2e-5, .abs = 2e-6};
  c.outputs = {{"pre", ElementKind::kF32, m, close,
                [](HcMixArgs& args, std::byte* p) { args.pre = reinterpret_cast<float*>(p); }},
               {"post", ElementKind::kF32, m, close,
                [](HcMixArgs& args, std::byte* p) { args.post = reinterpret_cast<float*>(p); }},
               {"comb", ElementKind::kF32, m * m, close,
                [](HcMixArgs& args, std::byte* p) { args.comb = reinterpret_cast<float*>(p); }}};
  c.storage = storage;
  return c;
}

TEST_P(HyperConnection, MixMatchesTheReference) {
  std::vector<KernelCase<HcMixArgs>> cases;
  for (const Shape& s : kShapes) cases.push_back(mix_case(s));
  expect_rows_match(hc_mix_kernels, GetParam(), cases);
}

TEST_P(HyperConnection, InMatchesTheReference) {
  struct Storage {
    std::vector<Bf16> x;
    std::vector<float> pre;
    OddBytes<Bf16> w;
  };
  std::vector<KernelCase<HcInArgs>> cases;
  for (size_t i = 0; i < 2 * std::size(kShapes); ++i) {
    const Shape& s = kShapes[i / 2];
    const bool has_norm = i % 2 == 0;
    auto storage = std::make_shared<Storage>();
    Random random(81);
    storage->x = random.bf16_normals(s.tokens * s.copies * s.hidden);
    storage->pre = random.normals(s.tokens * s.copies);
    storage->w = OddBytes<Bf16>(random.bf16_normals(s.hidden));
    KernelCase<HcInArgs> c;
    c.name = "hc_in " + shape_name(s) + (has_norm ? "" : " without norm");
    c.args = {storage->x.data(),
              storage->pre.data(),
              has_norm ? storage->w.data() : nullptr,
              nullptr,
              s.tokens,
              s.copies,
              s.hidden,
              1e-20f,
              nullptr};
    c.num_rows = s.tokens;
    c.slice = [](HcInArgs& args, int64_t first, int64_t count) {
      args.x += first * args.copies * args.hidden;
      args.pre += first * args.copies;
      args.num_tokens = count;
    };
    // A sum that nearly cancels may round elsewhere in bf16, hence abs.
    c.outputs = {{"u", ElementKind::kBf16, s.hidden,
                  Tolerance{.rel = 0x1p-7, .abs = 1e-4, .min_equal_share = 0.99},
                  [](HcInArgs& args, std::byte* p) { args.u = reinterpret_cast<Bf16*>(p); }}};
    c.storage = storage;
    cases.push_back(c);
  }
  expect_rows_match(hc_in_kernels, GetParam(), cases);
}

TEST_P(HyperConnection, OutMatchesTheReference) {
  struct Storage {
    std::vector<Bf16> y;
    std::vector<float> post, comb;
  };
  std::vector<KernelCase<HcOutArgs>> cases;
  for (const Shape& s : kShapes) {
    auto storage = std::make_shared<Storage>();
    Random random(91);
    const std::vector<Bf16> x = random.bf16_normals(s.tokens * s.copies * s.hidden);
    storage->y = random.bf16_normals(s.tokens * s.hidden);
    storage->post = random.normals(s.tokens * s.copies);
    storage->comb = random.normals(s.tokens * s.copies * s.copies);
    KernelCase<HcOutArgs> c;
    c.name = "hc_out " + shape_name(s);
    c.args = {storage->y.data(),
              storage->post.data(),
              storage->comb.data(),
              nullptr,
              s.tokens,
              s.copies,
              s.hidden,
              nullptr};
    c.num_rows = s.tokens;
    c.slice = [](HcOutArgs& args, int64_t first, int64_t count) {
      args.y += first * args.hidden;
      args.post += first * args.copies;
      args.comb += first * args.copies * args.copies;
      args.num_tokens = count;
    };
    c.outputs = {{"x", ElementKind::kBf16, s.copies * s.hidden,
                  Tolerance{.rel = 0x1p-7, .abs = 1e-4, .min_equal_share = 0.99},
                  [](HcOutArgs& args, std::byte* p) { args.x = reinterpret_cast<Bf16*>(p); }}};
    const auto* bytes = reinterpret_cast<const std::byte*>(x.data());
    c.outputs[0].initial.assign(bytes, bytes + x.size() * sizeof(Bf16));
    c.storage = storage;
    cases.push_back(c);
  }
  expect_rows_match(hc_out_kernels, GetParam(), cases);
}

}  // namespace
}  // namespace fathom::kernels
