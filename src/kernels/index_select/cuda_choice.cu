// The k best of many scores, ascending by id, of equal ones the lower.
//
// The histogram of the upper bits comes with the scores.  A cluster of 8 blocks shares out the
// candidates in order and reads them twice: once to count, by warp, what lies above the bin of the
// last place and the lower bits of what lies in it; once to write.  Limit: those two readings, 2
// bytes a candidate, by 8 multiprocessors a row.
#include "kernels/index_select/cuda_scan.cuh"

namespace fathom::kernels {
namespace {

using cuda::Choice;
using cuda::kBins;
using cuda::Order;

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / cuda::kWarp;
constexpr int kBlocks = 8;
constexpr int kLowBins = 1 << cuda::kBinShift;
constexpr int kUnit = 8;  // scores a lane reads at once

struct Work {
  int bins[kBins];
  int above[kWarps];          // of a warp: in bins above
  int low[kWarps][kLowBins];  // of a warp: in the bin, by lower bits
  int sums[kWarps];
  int total_above, total_low[kLowBins];  // of the block
  int bin, wanted;  // the bin that the last place falls into, and how many of it are taken
  int before[2], least;
};

// The bin of the k-th greatest; wanted = k less what lies above it.  All of it if there are fewer.
__device__ void find_bin(Work& work, const int* histogram, int k) {
  constexpr int kEach = kBins / kThreads;
  const int tid = static_cast<int>(threadIdx.x), lane = tid % cuda::kWarp, warp = tid / cuda::kWarp;
  // Thread i has the bins from the top, kEach at a time.
  int own[kEach], sum = 0;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    own[j] = histogram[kBins - 1 - (tid * kEach + j)];
    sum += own[j];
  }
  int until = sum;
  for (int step = 1; step < cuda::kWarp; step *= 2) {
    const int below = __shfl_up_sync(cuda::kAllLanes, until, static_cast<unsigned>(step));
    if (lane >= step) until += below;
  }
  if (lane == cuda::kWarp - 1) work.sums[warp] = until;
  if (tid == 0) {
    work.bin = 0;
    work.wanted = 0x7fffffff;
  }
  __syncthreads();
  for (int w = 0; w < warp; ++w) until += work.sums[w];
  int seen = until - sum;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    if (seen < k && seen + own[j] >= k) {
      work.bin = kBins - 1 - (tid * kEach + j);
      work.wanted = k - seen;
    }
    seen += own[j];
  }
  __syncthreads();
}

__device__ inline void unpack(const uint4& v, Order (&s)[kUnit]) {
  const unsigned word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < kUnit; ++i) s[i] = static_cast<Order>(word[i / 2] >> (16 * (i % 2)));
}

// Counts what the units [first, end) have; one warp.
__device__ void count(Work& work, const uint4* units, int64_t first, int64_t end) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int bin = work.bin;
  int above = 0;
#pragma unroll 4
  for (int64_t u = first + lane; u < end; u += cuda::kWarp) {
    Order s[kUnit];
    unpack(units[u], s);
#pragma unroll
    for (int i = 0; i < kUnit; ++i) {
      const int b = s[i] >> cuda::kBinShift;
      above += b > bin ? 1 : 0;
      if (b == bin && s[i] != cuda::kNever) {
        atomicAdd(&work.low[warp][s[i] & (kLowBins - 1)], 1);
      }
    }
  }
  above = __reduce_add_sync(cuda::kAllLanes, above);
  if (lane == 0) work.above[warp] = above;
}

__device__ inline int remote(const int& place, int rank) {
  return __float_as_int(
      cuda::cluster_load(cuda::shared_address(&place), static_cast<unsigned>(rank)));
}

// From the counts of all blocks: the least order taken, how many of just this order, and for this
// block what the blocks before it have above and at it.
__device__ void find_least(Work& work, int rank) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane < cuda::kWarp) {
    int all = 0, mine_before = 0;  // lane l: lower bits l
    int low_of[kBlocks], above_of[kBlocks];
#pragma unroll
    for (int r = 0; r < kBlocks; ++r) {
      low_of[r] = remote(work.total_low[lane], r);
      above_of[r] = remote(work.total_above, r);
    }
#pragma unroll
    for (int r = 0; r < kBlocks; ++r) {
      all += low_of[r];
      if (r < rank) mine_before += low_of[r];
    }
    int above = 0;  // at greater lower bits
    for (int l = 0; l < kLowBins; ++l) {
      const int n = __shfl_sync(cuda::kAllLanes, all, l);
      if (l > lane) above += n;
    }
    const bool has_last = above < work.wanted && above + all >= work.wanted;
    const unsigned found = __ballot_sync(cuda::kAllLanes, has_last);
    const int low = found != 0 ? __ffs(static_cast<int>(found)) - 1 : 0;
    const int taken_above = __shfl_sync(cuda::kAllLanes, above, low);
    int before_above = 0;  // of blocks before: greater lower bits
    for (int l = 0; l < kLowBins; ++l) {
      const int n = __shfl_sync(cuda::kAllLanes, mine_before, l);
      if (l > low) before_above += n;
    }
#pragma unroll
    for (int r = 0; r < kBlocks; ++r) before_above += r < rank ? above_of[r] : 0;
    const int equal_before = __shfl_sync(cuda::kAllLanes, mine_before, low);
    if (lane == 0) {
      work.least = work.bin << cuda::kBinShift | low;
      work.wanted -= taken_above;
      work.before[0] = before_above;
      work.before[1] = equal_before;
    }
  }
  __syncthreads();
}

__device__ inline int32_t id_of(const Choice& c, int64_t row, int64_t i) {
  if (c.blocks == nullptr) return static_cast<int32_t>(i);
  const int64_t block = c.blocks[row * c.blocks_stride + i / c.block_rows];
  return static_cast<int32_t>(block * c.block_rows + i % c.block_rows);
}

// Writes what is taken of the units [first, end); one warp.
__device__ void write(const Choice& c, const Work& work, int64_t row, const uint4* units,
                      int64_t first, int64_t end) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int low = work.least & (kLowBins - 1);
  int above = work.before[0], equal = work.before[1];
  for (int w = 0; w < warp; ++w) {
    above += work.above[w];
    for (int l = low + 1; l < kLowBins; ++l) above += work.low[w][l];
    equal += work.low[w][low];
  }
  for (int64_t base = first; base < end; base += cuda::kWarp) {
    const int64_t u = base + lane;
    Order s[kUnit] = {};
    if (u < end) unpack(units[u], s);
    int own = 0;  // above, and equal in the upper half
#pragma unroll
    for (int i = 0; i < kUnit; ++i) {
      own += s[i] > work.least ? 1 : 0;
      own += s[i] == work.least && s[i] != cuda::kNever ? 0x10000 : 0;
    }
    if (!__any_sync(cuda::kAllLanes, own != 0)) continue;
    int until = own;
    for (int step = 1; step < cuda::kWarp; step *= 2) {
      const int below = __shfl_up_sync(cuda::kAllLanes, until, static_cast<unsigned>(step));
      if (lane >= step) until += below;
    }
    int above_before = above + ((until - own) & 0xffff),
        equal_before = equal + ((until - own) >> 16);
#pragma unroll
    for (int i = 0; i < kUnit; ++i) {
      const bool is_above = s[i] > work.least;
      const bool is_equal = s[i] == work.least && s[i] != cuda::kNever;
      if (is_above || (is_equal && equal_before < work.wanted)) {
        const int place = above_before + (equal_before < work.wanted ? equal_before : work.wanted);
        c.chosen[row * c.k + place] = id_of(c, row, u * kUnit + i);
      }
      above_before += is_above ? 1 : 0;
      equal_before += is_equal ? 1 : 0;
    }
    const int all = __shfl_sync(cuda::kAllLanes, until, cuda::kWarp - 1);
    above += all & 0xffff;
    equal += all >> 16;
  }
  // The last warp of the last block has seen everything.
  if (cuda::cluster_rank() == kBlocks - 1 && warp == kWarps - 1 && lane == 0) {
    c.num_chosen[row] = above + (equal < work.wanted ? equal : work.wanted);
  }
}

__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads)
    choice_kernel(const __grid_constant__ Choice c) {
  cuda::wait_for_earlier();
  __shared__ Work work;
  const int64_t row = blockIdx.x / kBlocks;
  const int rank = static_cast<int>(cuda::cluster_rank()), tid = static_cast<int>(threadIdx.x);
  const int warp = tid / cuda::kWarp;
  const int64_t n = c.blocks != nullptr ? c.num_blocks[row] * c.block_rows
                                        : (c.num[row] + c.num_divisor - 1) / c.num_divisor;
  const int64_t units = (n + kUnit - 1) / kUnit;
  const int64_t slice = int64_t{rank} * kWarps + warp, slices = kBlocks * kWarps;
  const int64_t first = units * slice / slices, end = units * (slice + 1) / slices;
  const auto* scores = reinterpret_cast<const uint4*>(c.scores + row * c.stride);
  for (int i = tid; i < kWarps * kLowBins; i += kThreads) (&work.low[0][0])[i] = 0;
  find_bin(work, c.histogram + row * kBins, static_cast<int>(c.k));
  count(work, scores, first, end);
  __syncthreads();
  if (tid < kLowBins) {
    int sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += work.low[w][tid];
    work.total_low[tid] = sum;
  } else if (tid == kLowBins) {
    int sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += work.above[w];
    work.total_above = sum;
  }
  cuda::cluster_sync();
  find_least(work, rank);
  write(c, work, row, scores, first, end);
  cuda::cluster_sync();  // others may still read this block's counts
}

}  // namespace

void cuda::enqueue_choice(CudaStream& stream, const Choice& choice, int64_t rows) {
  if (rows == 0) return;
  cuda::launch(stream, "index_select, choice", choice_kernel,
               {cuda::grid(rows * kBlocks), kThreads}, choice);
}

}  // namespace fathom::kernels
