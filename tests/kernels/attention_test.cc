// Sparse attention and the index choice: every row against the reference, on packed caches.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "harness/kernel_harness.h"
#include "harness/random_values.h"
#include "kernels/index_select/index_select.h"
#include "kernels/pack_rows/pack_rows.h"
#include "kernels/sparse_attention/sparse_attention.h"

namespace fathom::kernels {
namespace {

using fathom::harness::OddBytes;
using fathom::harness::Random;
using harness::ElementKind;
using harness::expect_rows_match;
using harness::kBitEqual;
using harness::KernelCase;
using harness::Tolerance;

class Attention : public harness::IsaTest {};
INSTANTIATE_TEST_SUITE_P(Rows, Attention, harness::all_isas(), harness::isa_test_name);
class IndexSelect : public harness::IsaTest {};
INSTANTIATE_TEST_SUITE_P(Rows, IndexSelect, harness::all_isas(), harness::isa_test_name);

// Random rows packed by the reference, one after the other.
std::vector<uint8_t> packed_rows(Random& random, RowFormat format, int64_t rows, int64_t dim) {
  const std::vector<Bf16> x = random.bf16_normals(rows * dim);
  std::vector<uint8_t> bytes(static_cast<size_t>(rows * row_bytes(format, dim)));
  std::vector<uint8_t*> to;
  for (int64_t r = 0; r < rows; ++r) to.push_back(bytes.data() + r * row_bytes(format, dim));
  Stream stream(1);
  PackRowsArgs args = {};
  args.x = x.data();
  args.rows = to.data();
  args.format = format;
  args.num_rows = rows;
  args.heads_per_row = 1;
  args.dim = dim;
  args.stream = &stream;
  pack_rows_kernels(DeviceKind::kCpu).front().run(args);
  return bytes;
}

// A cache of `rows` packed rows in blocks that lie in memory in reverse order.
struct Cache {
  std::vector<std::byte> memory;
  std::vector<const std::byte*> blocks;
  PagedRows rows;
};

void fill_cache(Cache& cache, Random& random, RowFormat format, int64_t rows, int64_t dim,
                int64_t rows_per_block) {
  const int64_t bytes = row_bytes(format, dim);
  constexpr int64_t kOffset = 24;  // of the rows in a block
  const int64_t num_blocks = (rows + rows_per_block - 1) / rows_per_block;
  const int64_t block_bytes = kOffset + rows_per_block * bytes;
  const std::vector<uint8_t> packed = packed_rows(random, format, rows, dim);
  cache.memory.assign(static_cast<size_t>(num_blocks * block_bytes), std::byte{0xff});
  for (int64_t b = 0; b < num_blocks; ++b) {
    std::byte* block = cache.memory.data() + (num_blocks - 1 - b) * block_bytes;
    cache.blocks.push_back(block);
    const int64_t count = std::min(rows_per_block, rows - b * rows_per_block);
    std::memcpy(block + kOffset, packed.data() + b * rows_per_block * bytes,
                static_cast<size_t>(count * bytes));
  }
  cache.rows = {cache.blocks.data(), kOffset, rows_per_block, bytes};
}

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

// ---- index_select

struct IndexShape {
  int64_t rows, heads, dim, topk, visible;
  CandidateMode mode;
  int64_t candidate_blocks, block_rows;
};

struct IndexData {
  std::vector<uint8_t> q;
  std::vector<Bf16> c;
  Cache cache[2];
  PagedRows keys[2];
  std::vector<int32_t> segment, blocks, num_blocks;
  std::vector<int64_t> num_visible;
};

KernelCase<IndexSelectArgs> index_case(const IndexShape& s) {
  auto data = std::make_shared<IndexData>();
  Random random(111);
  data->q = packed_rows(random, RowFormat::kFp4Key, s.rows * s.heads, s.dim);
  data->c = random.bf16_normals(s.rows * s.heads, 0.05f);
  for (int i = 0; i < 2; ++i) {
    fill_cache(data->cache[i], random, RowFormat::kFp4Key, std::max<int64_t>(1, s.visible), s.dim,
               64);
    data->keys[i] = data->cache[i].rows;
  }
  for (int64_t t = 0; t < s.rows; ++t) {
    data->segment.push_back(static_cast<int32_t>(t % 2));
    data->num_visible.push_back(t == 3 ? 0 : s.visible - t * s.visible / (3 * s.rows));
    // kWithin: every third block, and the newest.
    const int64_t blocks = (data->num_visible.back() + s.block_rows - 1) / s.block_rows;
    int32_t count = 0;
    for (int64_t b = 0; b < blocks; ++b) {
      if ((b % 3 == 1 && count + 1 < s.candidate_blocks) || b == blocks - 1) {
        data->blocks.push_back(static_cast<int32_t>(b));
        ++count;
      }
    }
    data->num_blocks.push_back(count);
    data->blocks.resize(static_cast<size_t>((t + 1) * s.candidate_blocks), -1);
  }
  KernelCase<IndexSelectArgs> c;
  c.name = "index_select rows " + std::to_string(s.rows) + " visible " + std::to_string(s.visible) +
           " topk " + std::to_string(s.topk) + " mode " + std::to_string(static_cast<int>(s.mode));
  IndexSelectArgs& a = c.args;
  a.q = data->q.data();
  a.c = data->c.data();
  a.keys = data->keys;
  a.segment = data->segment.data();
  a.num_visible = data->num_visible.data();
  a.max_visible = s.visible + 100 * (s.rows % 2);  // it need not be reached
  a.blocks = data->blocks.data();
  a.num_blocks = data->num_blocks.data();
  a.mode = s.mode;
  a.candidate_blocks = s.candidate_blocks;
  a.block_rows = s.block_rows;
  a.num_rows = s.rows;
  a.num_heads = s.heads;
  a.dim = s.dim;
  a.topk = s.topk;
  a.c_scale = 0.3f;
  c.num_rows = s.rows;
  const bool publish = s.mode == CandidateMode::kPublish;
  c.slice = [publish](IndexSelectArgs& args, int64_t first, int64_t count) {
    args.q += first * args.num_heads * row_bytes(RowFormat::kFp4Key, args.dim);
    args.c += first * args.num_heads;
    args.segment += first;
    args.num_visible += first;
    args.num_rows = count;
    if (!publish) {
      args.blocks += first * args.candidate_blocks;
      args.num_blocks += first;
    }
  };
  c.outputs = {
      {"chosen", ElementKind::kI32, s.topk, kBitEqual,
       [](IndexSelectArgs& args, std::byte* p) { args.chosen = reinterpret_cast<int32_t*>(p); }},
      {"num_chosen", ElementKind::kI32, 1, kBitEqual, [](IndexSelectArgs& args, std::byte* p) {
         args.num_chosen = reinterpret_cast<int32_t*>(p);
       }}};
  if (publish) {
    c.outputs.push_back(
        {"blocks", ElementKind::kI32, s.candidate_blocks, kBitEqual,
         [](IndexSelectArgs& args, std::byte* p) { args.blocks = reinterpret_cast<int32_t*>(p); }});
    c.outputs.push_back(
        {"num_blocks", ElementKind::kI32, 1, kBitEqual, [](IndexSelectArgs& args, std::byte* p) {
           args.num_blocks = reinterpret_cast<int32_t*>(p);
         }});
  }
  c.storage = data;
  return c;
}

TEST_P(IndexSelect, ChoosesTheRowsOfTheReference) {
  std::vector<KernelCase<IndexSelectArgs>> cases;
  for (const CandidateMode mode :
       {CandidateMode::kNone, CandidateMode::kPublish, CandidateMode::kWithin}) {
    for (const IndexShape& s : std::initializer_list<IndexShape>{
             {0, 8, 32, 4, 10, mode, 4, 8},
             {1, 1, 32, 4, 3, mode, 4, 8},
             {5, 3, 64, 4, 40, mode, 4, 8},
             {6, 8, 32, 16, 333, mode, 20, 4},
             {5, 11, 160, 64, 500, mode, 100, 3},
             {2, 32, 128, 512, 6000, mode, 100, 8},
             {9, 32, 128, 64, 2000, mode, 64, 8},
             {1, 32, 128, 512, 20000, mode, 2048, 8},
         }) {
      cases.push_back(index_case(s));
    }
  }
  expect_rows_match(index_select_kernels, GetParam(), cases);
}

// Scores that all tie: the lower rows win.
TEST_P(IndexSelect, TiesGoToTheLowerRow) {
  for (const Kernel<IndexSelectArgs>& kernel : index_select_kernels(harness::tested_device())) {
    if (kernel.isa != GetParam()) continue;
    KernelCase<IndexSelectArgs> c = index_case({1, 8, 32, 40, 1000, CandidateMode::kNone, 4, 8});
    IndexSelectArgs args = c.args;
    if (!kernel.supports(args)) continue;
    const std::vector<Bf16> zeros(8, Bf16{0x8000});
    args.c = zeros.data();
    std::vector<int32_t> chosen(40, -1);
    std::vector<int32_t> num_chosen = {-1};
    args.chosen = chosen.data();
    args.num_chosen = num_chosen.data();
    harness::run_kernel(kernel, args);
    ASSERT_EQ(num_chosen[0], 40) << kernel.name;
    for (int32_t i = 0; i < 40; ++i) EXPECT_EQ(chosen[static_cast<size_t>(i)], i) << kernel.name;
  }
}

}  // namespace
}  // namespace fathom::kernels
