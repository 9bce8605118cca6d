// Sparse attention: every row against the reference, on packed caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "harness/kernel_harness.h"
#include "harness/random_values.h"
#include "kernels/sparse_attention/sparse_attention.h"
#include "packed_cache.h"

namespace fathom::kernels {
namespace {

using fathom::harness::OddBytes;
using fathom::harness::Random;
using harness::Cache;
using harness::ElementKind;
using harness::expect_rows_match;
using harness::fill_cache;
using harness::KernelCase;
using harness::packed_rows;
using harness::Tolerance;

class Attention : public harness::IsaTest {};
INSTANTIATE_TEST_SUITE_P(Rows, Attention, harness::all_isas(), harness::isa_test_name);

struct AttentionShape {
  int64_t rows, heads, dim, window, topk;  // topk 0: no compressed rows
  int64_t num_keys;                        // compressed rows there are
};

struct AttentionData {
  std::vector<Bf16> q;
  OddBytes<float> sink;
  std::vector<int32_t> segment, chosen, num_chosen;
  std::vector<int64_t> position, first_window;
  std::vector<uint8_t> ring[2], fresh[2];
  WindowRows window[2];
  Cache cache[2];
  PagedRows compressed[2];
};

// Two sequences whose batch rows alternate; positions run on across the border of ring and fresh
// rows.
KernelCase<SparseAttentionArgs> attention_case(const AttentionShape& s,
                                               Numerics numerics = Numerics::kReference) {
  auto data = std::make_shared<AttentionData>();
  Random random(101);
  data->q = random.bf16_normals(s.rows * s.heads * s.dim);
  data->sink = OddBytes<float>(random.normals(s.heads, 3));
  const int64_t start = s.window / 2;  // rows before this are in the ring
  for (int i = 0; i < 2; ++i) {
    const int64_t bytes = row_bytes(RowFormat::kFp8, s.dim);
    data->ring[i] = packed_rows(random, RowFormat::kFp8, s.window, s.dim);
    data->fresh[i] = packed_rows(random, RowFormat::kFp8, s.rows + 1, s.dim);
    data->window[i] = {data->ring[i].data(), data->fresh[i].data(), s.window, start, bytes};
    if (s.topk > 0) {
      fill_cache(data->cache[i], random, RowFormat::kFp4Kv, s.num_keys, s.dim, 13);
      data->compressed[i] = data->cache[i].rows;
    }
  }
  data->chosen.assign(static_cast<size_t>(s.rows * s.topk), -1);
  for (int64_t t = 0; t < s.rows; ++t) {
    data->segment.push_back(static_cast<int32_t>(t % 2));
    data->position.push_back(start + t / 2);
    data->first_window.push_back(std::max<int64_t>(0, start + t / 2 - s.window + 1));
    const int64_t count = s.topk == 0 ? 0 : std::min(s.topk, t == 0 ? 0 : random.below(s.num_keys));
    std::set<int32_t> ids;
    while (static_cast<int64_t>(ids.size()) < count) {
      ids.insert(static_cast<int32_t>(random.below(s.num_keys)));
    }
    std::copy(ids.begin(), ids.end(), data->chosen.begin() + t * s.topk);
    data->num_chosen.push_back(static_cast<int32_t>(count));
  }
  KernelCase<SparseAttentionArgs> c;
  c.name = "sparse_attention rows " + std::to_string(s.rows) + " heads " + std::to_string(s.heads) +
           " dim " + std::to_string(s.dim) + " topk " + std::to_string(s.topk) + " " +
           std::string(numerics_name(numerics));
  SparseAttentionArgs& a = c.args;
  a.q = data->q.data();
  a.sink = data->sink.data();
  a.segment = data->segment.data();
  a.position = data->position.data();
  a.first_window = data->first_window.data();
  a.max_window = s.window;
  a.window = data->window;
  a.compressed = s.topk > 0 ? data->compressed : nullptr;
  a.chosen = data->chosen.data();
  a.num_chosen = data->num_chosen.data();
  a.topk = s.topk;
  a.num_rows = s.rows;
  a.num_heads = s.heads;
  a.dim = s.dim;
  a.scale = 1 / std::sqrt(static_cast<float>(s.dim));
  a.numerics = numerics;
  c.num_rows = s.rows;
  c.slice = [](SparseAttentionArgs& args, int64_t first, int64_t count) {
    args.q += first * args.num_heads * args.dim;
    args.segment += first;
    args.position += first;
    args.first_window += first;
    args.chosen += first * args.topk;
    args.num_chosen += first;
    args.num_rows = count;
  };
  c.outputs = {
      {"o", ElementKind::kBf16, s.heads * s.dim,
       Tolerance{.rel = 0x1p-7, .abs = 2e-4, .min_equal_share = 0.98},
       [](SparseAttentionArgs& args, std::byte* p) { args.o = reinterpret_cast<Bf16*>(p); }}};
  c.storage = data;
  return c;
}

TEST_P(Attention, SparseAttentionMatchesTheReference) {
  std::vector<KernelCase<SparseAttentionArgs>> cases;
  for (const AttentionShape& s : std::initializer_list<AttentionShape>{
           {0, 4, 32, 8, 4, 30},
           {1, 1, 32, 8, 0, 0},
           {5, 3, 32, 8, 6, 30},
           {9, 8, 64, 64, 64, 200},
           {3, 17, 96, 16, 20, 64},
           {2, 33, 160, 5, 9, 40},
           {40, 8, 64, 64, 64, 200},
           {1, 64, 512, 128, 512, 700},
           {2, 33, 160, 128, 300, 500},
           {7, 64, 512, 128, 512, 700},
           {3, 60, 512, 128, 0, 0},
           {3, 17, 96, 128, 200, 400},  // a last stripe of 32 channels, a head in lanes of its own
       }) {
    cases.push_back(attention_case(s));
    cases.push_back(attention_case(s, Numerics::kInt8));
  }
  expect_rows_match(sparse_attention_kernels, GetParam(), cases);
  if (harness::tested_device() != DeviceKind::kCpu) return;
  for (const KernelCase<SparseAttentionArgs>& c : cases) {
    const auto& kernel = select(sparse_attention_kernels(DeviceKind::kCpu), GetParam(), c.args);
    const harness::CaseRunner<SparseAttentionArgs> runner(c);
    runner.expect_same_bits(kernel, runner.run(kernel, 1, 0, c.num_rows),
                            runner.run(kernel, 9, 0, c.num_rows), 0, "with 9 threads");
  }
}

// The least clusters of each of a GPU's kernels: one block, up to five, up to eight.
TEST_P(Attention, SmallShapesReachEveryGpuKernel) {
  if (harness::tested_device() == DeviceKind::kCpu) GTEST_SKIP() << "skipped: a GPU's choices";
  std::vector<KernelCase<SparseAttentionArgs>> cases;
  for (const AttentionShape& s : std::initializer_list<AttentionShape>{
           {3, 17, 96, 16, 20, 64},
           {3, 5, 512, 20, 30, 64},
           {2, 17, 512, 20, 200, 300},
           {2, 33, 512, 20, 700, 800},
       }) {
    cases.push_back(attention_case(s));
  }
  harness::expect_rows_close(sparse_attention_kernels, GetParam(), cases);
}

// fp32 sums have a fixed order too: of lanes, not of instruction sets.
TEST_P(Attention, SparseAttentionInFp32HasTheBitsOfThePlainRow) {
  const Kernel<SparseAttentionArgs>* plain = nullptr;
  for (const Kernel<SparseAttentionArgs>& kernel : sparse_attention_kernels(DeviceKind::kCpu)) {
    if (kernel.isa == Isa::kPlain) plain = &kernel;
  }
  ASSERT_NE(plain, nullptr);
  for (const Kernel<SparseAttentionArgs>& kernel : sparse_attention_kernels(DeviceKind::kCpu)) {
    if (kernel.isa != GetParam() || kernel.isa < Isa::kPlain) continue;
    for (const AttentionShape& s : std::initializer_list<AttentionShape>{
             {9, 8, 64, 64, 64, 200}, {5, 17, 96, 16, 20, 64}, {3, 64, 512, 128, 512, 700}}) {
      KernelCase<SparseAttentionArgs> c = attention_case(s, Numerics::kInt8);
      std::vector<Bf16> want(static_cast<size_t>(s.rows * s.heads * s.dim)), got(want.size());
      SparseAttentionArgs args = c.args;
      args.o = want.data();
      harness::run_kernel(*plain, args);
      args.o = got.data();
      harness::run_kernel(kernel, args);
      EXPECT_EQ(want, got) << kernel.name << ", " << c.name;
    }
  }
}

TEST_P(Attention, SparseAttentionMayOverwriteItsQueries) {
  for (const Kernel<SparseAttentionArgs>& kernel :
       sparse_attention_kernels(harness::tested_device())) {
    if (kernel.isa != GetParam()) continue;
    for (const AttentionShape& s : std::initializer_list<AttentionShape>{
             {1, 33, 64, 16, 20, 64}, {5, 17, 96, 16, 20, 64}, {3, 64, 512, 128, 512, 700}}) {
      KernelCase<SparseAttentionArgs> c = attention_case(s);
      SparseAttentionArgs args = c.args;
      if (!kernel.supports(args)) continue;
      std::vector<Bf16> q(args.q, args.q + s.rows * s.heads * s.dim), o(q.size());
      args.o = o.data();
      harness::run_kernel(kernel, args);
      args.q = args.o = q.data();
      harness::run_kernel(kernel, args);
      EXPECT_EQ(q, o) << kernel.name << ", " << c.name;
    }
  }
}

TEST_P(Attention, ARowWithoutKeysGivesZero) {
  for (const Kernel<SparseAttentionArgs>& kernel :
       sparse_attention_kernels(harness::tested_device())) {
    if (kernel.isa != GetParam()) continue;
    KernelCase<SparseAttentionArgs> c = attention_case({1, 3, 32, 8, 4, 30});
    SparseAttentionArgs args = c.args;
    if (!kernel.supports(args)) continue;
    const std::vector<int64_t> position = {3}, first_window = {4};
    args.position = position.data();
    args.first_window = first_window.data();  // and num_chosen of row 0 is 0
    std::vector<Bf16> o(96, Bf16{0x7fc0});
    args.o = o.data();
    harness::run_kernel(kernel, args);
    EXPECT_EQ(o, std::vector<Bf16>(96, Bf16{0})) << kernel.name;
  }
}

// The sink may be far above every score: then it takes all the weight.
TEST_P(Attention, AHugeSinkTakesTheWholeWeight) {
  for (const Kernel<SparseAttentionArgs>& kernel :
       sparse_attention_kernels(harness::tested_device())) {
    if (kernel.isa != GetParam()) continue;
    KernelCase<SparseAttentionArgs> c = attention_case({1, 2, 32, 8, 4, 30});
    SparseAttentionArgs args = c.args;
    if (!kernel.supports(args)) continue;
    const OddBytes<float> sink({1e4f, -1e4f});
    args.sink = sink.data();
    std::vector<Bf16> o(64);
    args.o = o.data();
    harness::run_kernel(kernel, args);
    for (size_t i = 0; i < 32; ++i) EXPECT_EQ(to_float(o[i]), 0.0f) << kernel.name;
    EXPECT_NE(to_float(o[40]), 0.0f) << kernel.name;
  }
}

}  // namespace
}  // namespace fathom::kernels
