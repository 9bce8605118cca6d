// The index choice: every row against the reference, on packed caches.
#include "kernels/index_select/index_select.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "harness/kernel_harness.h"
#include "harness/random_values.h"
#include "packed_cache.h"

namespace fathom::kernels {
namespace {

using fathom::harness::Random;
using harness::Cache;
using harness::ElementKind;
using harness::expect_rows_match;
using harness::fill_cache;
using harness::kBitEqual;
using harness::KernelCase;
using harness::packed_rows;

class IndexSelect : public harness::IsaTest {};
INSTANTIATE_TEST_SUITE_P(Rows, IndexSelect, harness::all_isas(), harness::isa_test_name);

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

// Its scan, the scores of blocks and both choices, each over more than one block of keys.
TEST_P(IndexSelect, SmallShapesReachEveryGpuKernel) {
  if (harness::tested_device() == DeviceKind::kCpu) GTEST_SKIP() << "skipped: a GPU's choices";
  std::vector<KernelCase<IndexSelectArgs>> cases;
  for (const CandidateMode mode :
       {CandidateMode::kNone, CandidateMode::kPublish, CandidateMode::kWithin}) {
    cases.push_back(index_case({5, 3, 64, 4, 300, mode, 16, 8}));
    cases.push_back(index_case({5, 11, 128, 64, 1500, mode, 160, 8}));
  }
  harness::expect_rows_close(index_select_kernels, GetParam(), cases);
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
