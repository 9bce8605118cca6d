// index_select.cuda_mma: the release's shape (up to 32 heads of 128) on tensor cores.
//
// A warp has the queries of a row in registers, widened to bf16 (exact), and goes through keys 8 at
// a time: a lane reads a quarter of a key and multiplies it with all heads.  Scores are kept as 16
// bits that order as they do, with a histogram of their upper bits; cuda_choice.cu takes the best.
// Products are exact and sums in fp32, so a score differs from the reference's only if that rounds
// otherwise.  Limit: 68 bytes a key, and about 170 instructions of a warp for 8 of them.
#include "kernels/index_select/cuda_scan.cuh"
#include "kernels/index_select/rows.h"
#include "kernels/linear/cuda_stored.cuh"

namespace fathom::kernels {
namespace {

using cuda::kBins;
using cuda::Order;

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / cuda::kWarp;
constexpr int kHeads = 32;
constexpr int kDim = 128;
constexpr int kCodeBytes = kDim / 2;
constexpr int kSteps = kDim / 16;
constexpr int kWarpKeys = 256;
constexpr int kBlockKeys = kWarps * kWarpKeys;

// Scores in the scratch.
struct Scores {
  Order* of_rows;  // [rows, stride]
  int* histogram;  // [rows, kBins]
  int64_t stride;
};

// A lane's quarter of a packed row: 16 bytes of codes and their scale.
struct Quarter {
  unsigned word[4];
  unsigned scale;
};
__device__ inline Quarter read_quarter(const uint8_t* row) {
  const int q = static_cast<int>(threadIdx.x) % 4;
  const uint8_t* at = row + 16 * q;
  Quarter out;
  if (cuda::is_aligned_device(at, 4)) {
#pragma unroll
    for (int i = 0; i < 4; ++i) out.word[i] = reinterpret_cast<const unsigned*>(at)[i];
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out.word[i] = at[4 * i] | at[4 * i + 1] << 8 | at[4 * i + 2] << 16 |
                    static_cast<unsigned>(at[4 * i + 3]) << 24;
    }
  }
  out.scale = row[kCodeBytes + q];
  return out;
}

// Its 32 values as operands: pair p of instruction s.
__device__ inline void widen(const Quarter& in, unsigned (&out)[kSteps][2]) {
  const cuda::Factor f = cuda::make_factor<126>(in.scale);
#pragma unroll
  for (int w = 0; w < 4; ++w) {
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const unsigned v = in.word[w] >> (4 * m);
      unsigned x = cuda::mul_bf16x2(((v << 12) & 0x80008000u) | ((v << 6) & 0x01c001c0u), f.first);
      if (f.second != 0) x = cuda::mul_bf16x2(x, f.second);
      out[2 * w + m / 2][m % 2] = x;
    }
  }
}

struct Queries {
  unsigned a[2][kSteps][4];  // heads 16 i + lane / 4 and that + 8
  unsigned weight[2][2];     // of them, twice in a word
};

__device__ void load_queries(const IndexSelectArgs& args, int64_t t, Queries& q) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const int64_t bytes = row_bytes(RowFormat::kFp4Key, kDim);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int high = 0; high < 2; ++high) {
      const int h = 16 * i + 8 * high + lane / 4;
      const bool there = h < args.num_heads;
      unsigned v[kSteps][2];
      widen(read_quarter(args.q + (t * args.num_heads + (there ? h : 0)) * bytes), v);
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        q.a[i][s][high] = v[s][0];
        q.a[i][s][2 + high] = v[s][1];
      }
      const float c = there ? to_float(args.c[t * args.num_heads + h]) : 0.0f;
      q.weight[i][high] = to_bf16(c * args.c_scale).bits * 0x10001u;
    }
  }
}

// The scores of 8 keys; every lane gets those of keys 2 (lane % 4) and that + 1.
__device__ inline void score_keys(const Queries& q, const Quarter& key, float (&score)[2]) {
  unsigned b[kSteps][2];
  widen(key, b);
  score[0] = score[1] = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float dot[4] = {};
#pragma unroll
    for (int s = 0; s < kSteps; ++s) cuda::mma_bf16(dot, q.a[i][s], b[s][0], b[s][1]);
#pragma unroll
    for (int high = 0; high < 2; ++high) {
      unsigned relu;
      asm("cvt.rn.relu.bf16x2.f32 %0, %1, %2;"
          : "=r"(relu)
          : "f"(dot[2 * high + 1]), "f"(dot[2 * high]));
      const unsigned product = cuda::mul_bf16x2(relu, q.weight[i][high]);
      score[0] += __uint_as_float(product << 16);
      score[1] += __uint_as_float(product & 0xffff0000u);
    }
  }
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    for (int offset = 4; offset < cuda::kWarp; offset *= 2) {
      score[k] += __shfl_xor_sync(cuda::kAllLanes, score[k], offset);
    }
  }
}

// Candidates and their rows: all visible rows, or those of the candidate blocks.
struct Candidates {
  int64_t n;
  const int32_t* blocks;  // nullptr: all rows
  int64_t block_rows;
  int64_t visible;

  __device__ int64_t row(int64_t i) const {
    if (blocks == nullptr) return i;
    const auto b = static_cast<unsigned>(i) / static_cast<unsigned>(block_rows);
    return blocks[b] * block_rows + (i - b * block_rows);
  }
};
__device__ Candidates candidates_of(const IndexSelectArgs& args, int64_t t) {
  if (args.mode != CandidateMode::kWithin)
    return {args.num_visible[t], nullptr, 1, args.num_visible[t]};
  return {args.num_blocks[t] * args.block_rows, args.blocks + t * args.candidate_blocks,
          args.block_rows, args.num_visible[t]};
}

__global__ void __launch_bounds__(kThreads)
    score_kernel(const __grid_constant__ IndexSelectArgs args, const __grid_constant__ Scores out) {
  cuda::wait_for_earlier();
  __shared__ int bins[kBins];
  const int64_t t = blockIdx.y, block_first = int64_t{blockIdx.x} * kBlockKeys;
  const Candidates candidates = candidates_of(args, t);
  if (block_first >= candidates.n) return;
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) bins[i] = 0;
  Queries q;
  load_queries(args, t, q);
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const PagedRows keys = args.keys[args.segment[t]];
  const int64_t first = block_first + static_cast<int>(threadIdx.x) / cuda::kWarp * kWarpKeys;
  const auto address = [&](int64_t base) {  // of this lane's key of the 8 from base on
    int64_t i = base + lane / 4;
    if (i >= candidates.n) i = candidates.n - 1;
    int64_t row = candidates.row(i);
    if (row >= candidates.visible) row = candidates.visible - 1;
    const auto g = static_cast<unsigned>(row), per = static_cast<unsigned>(keys.rows_per_block);
    return reinterpret_cast<const uint8_t*>(keys.blocks[g / per]) + keys.offset +
           int64_t{g % per} * keys.row_bytes;
  };
  Quarter next = {};
  if (first < candidates.n) next = read_quarter(address(first));
  for (int64_t base = first; base < first + kWarpKeys && base < candidates.n; base += 8) {
    const Quarter key = next;
    if (base + 8 < first + kWarpKeys) next = read_quarter(address(base + 8));
    float score[2];
    score_keys(q, key, score);
    if (lane >= 4) continue;
    Order order[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int64_t i = base + 2 * lane + k;
      const bool counts = i < candidates.n && candidates.row(i) < candidates.visible;
      // + 0: a -0 would order below 0.
      order[k] = counts ? cuda::order_of(to_bf16(score[k] + 0.0f)) : cuda::kNever;
      if (counts) atomicAdd(&bins[order[k] >> cuda::kBinShift], 1);
    }
    *reinterpret_cast<ushort2*>(out.of_rows + t * out.stride + base + 2 * lane) = {order[0],
                                                                                   order[1]};
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) {
    if (bins[i] != 0) atomicAdd(&out.histogram[t * kBins + i], bins[i]);
  }
}

// A kernel, since a memset would end before the next kernel begins.
__global__ void __launch_bounds__(kThreads) clear_kernel(uint4* words, int64_t count) {
  cuda::wait_for_earlier();
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) words[i] = {0, 0, 0, 0};
}

// Of each block its best row, the newest always first.  A thread a block.
__global__ void __launch_bounds__(kThreads)
    block_kernel(const __grid_constant__ IndexSelectArgs args, const __grid_constant__ Scores rows,
                 const __grid_constant__ Scores blocks) {
  cuda::wait_for_earlier();
  __shared__ int bins[kBins];
  const int64_t t = blockIdx.y, n = args.num_visible[t];
  const int64_t num = (n + args.block_rows - 1) / args.block_rows;
  if (int64_t{blockIdx.x} * kThreads >= (num + 7) / 8 * 8) return;
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) bins[i] = 0;
  __syncthreads();
  const int64_t b = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (b < (num + 7) / 8 * 8) {
    Order best = cuda::kNever;
    const int64_t last = (b + 1) * args.block_rows < n ? (b + 1) * args.block_rows : n;
    for (int64_t g = b * args.block_rows; g < last; ++g) {
      const Order s = rows.of_rows[t * rows.stride + g];
      best = s > best ? s : best;
    }
    if (b == num - 1) best = cuda::kAlways;
    blocks.of_rows[t * blocks.stride + b] = best;
    if (best != cuda::kNever) atomicAdd(&bins[best >> cuda::kBinShift], 1);
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) {
    if (bins[i] != 0) atomicAdd(&blocks.histogram[t * kBins + i], bins[i]);
  }
}

int64_t round_to(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Rows [first, first + rows), whose scores fit the scratch.
void run_slab(CudaStream& stream, IndexSelectArgs args, int64_t first, int64_t rows) {
  args.q += first * args.num_heads * row_bytes(RowFormat::kFp4Key, args.dim);
  args.c += first * args.num_heads;
  args.segment += first;
  args.num_visible += first;
  args.chosen += first * args.topk;
  args.num_chosen += first;
  if (args.mode != CandidateMode::kNone) {
    args.blocks += first * args.candidate_blocks;
    args.num_blocks += first;
  }
  const bool publishes = args.mode == CandidateMode::kPublish;
  const bool within = args.mode == CandidateMode::kWithin;
  const int64_t most = within ? args.candidate_blocks * args.block_rows : args.max_visible;
  const int64_t num_blocks = publishes ? cuda::ceil_div(args.max_visible, args.block_rows) : 0;
  Scores of_rows = {nullptr, nullptr, round_to(most, 8)};
  Scores of_blocks = {nullptr, nullptr, round_to(num_blocks, 8)};
  const int64_t histograms = rows * kBins * (publishes ? 2 : 1);
  std::byte* memory = stream.scratch(
      static_cast<size_t>(histograms * 4 + rows * (of_rows.stride + of_blocks.stride) * 2 + 16));
  if (memory == nullptr) return;
  of_rows.histogram = reinterpret_cast<int*>(memory);
  of_blocks.histogram = of_rows.histogram + rows * kBins;
  of_rows.of_rows = reinterpret_cast<Order*>(of_rows.histogram + histograms);
  of_blocks.of_rows = of_rows.of_rows + rows * of_rows.stride;
  cuda::launch(stream, "index_select, histograms", clear_kernel,
               {cuda::grid(cuda::ceil_div(histograms / 4, kThreads)), kThreads},
               reinterpret_cast<uint4*>(memory), histograms / 4);
  if (most > 0) {
    cuda::launch(stream, "index_select, scores", score_kernel,
                 {cuda::grid(cuda::ceil_div(most, kBlockKeys), rows), kThreads}, args, of_rows);
  }
  cuda::Choice choice = {of_rows.of_rows,
                         of_rows.stride,
                         of_rows.histogram,
                         args.num_visible,
                         1,
                         within ? args.blocks : nullptr,
                         args.num_blocks,
                         args.candidate_blocks,
                         args.block_rows,
                         args.topk,
                         args.chosen,
                         args.num_chosen};
  if (publishes && num_blocks > 0) {
    cuda::launch(stream, "index_select, blocks", block_kernel,
                 {cuda::grid(cuda::ceil_div(of_blocks.stride, kThreads), rows), kThreads}, args,
                 of_rows, of_blocks);
  }
  if (publishes) {
    cuda::Choice blocks = choice;
    blocks.scores = of_blocks.of_rows;
    blocks.stride = of_blocks.stride;
    blocks.histogram = of_blocks.histogram;
    blocks.num_divisor = args.block_rows;
    blocks.k = args.candidate_blocks;
    blocks.chosen = args.blocks;
    blocks.num_chosen = args.num_blocks;
    cuda::enqueue_choice(stream, blocks, rows);
  }
  cuda::enqueue_choice(stream, choice, rows);
}

}  // namespace

bool index_select_cuda_mma_supports(const IndexSelectArgs& args) {
  return args.dim == kDim && args.num_heads <= kHeads;
}

void index_select_cuda_mma(const IndexSelectArgs& args) {
  constexpr int64_t kSlabBytes = int64_t{256} << 20;
  int64_t slab = kSlabBytes / (2 * args.max_visible + 4 * kBins);
  slab = slab < 1 ? 1 : slab > 32768 ? 32768 : slab;
  for (int64_t t = 0; t < args.num_rows; t += slab) {
    run_slab(cuda_stream(args.stream), args, t,
             args.num_rows - t < slab ? args.num_rows - t : slab);
  }
}

}  // namespace fathom::kernels
