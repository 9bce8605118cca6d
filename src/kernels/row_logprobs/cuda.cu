// A cluster of 8 blocks a row, which read it twice: for the greatest logit and for the masses.  The
// likeliest: every thread has the best of its share; a round takes the best of the block, and only
// the thread that had it reads its share again.  The first block merges the lists of all.
//
// Limit: latency, about 2 us a likeliest token.
#include "kernels/row_draw/cuda_row.cuh"
#include "kernels/row_logprobs/rows.h"

namespace fathom::kernels {
namespace {

using namespace row_draw;

struct Found {
  Key warps[kWarps];
  Key best, mass;  // of the block
  Key top[kRowLogprobsTopMost + 1];
};

// The greatest key below `below` of this thread's share.
__device__ Key best_below(const Row& row, int rank, Key below) {
  Key best = 0;
#pragma unroll 8
  for (int64_t i = int64_t{rank} * kThreads + threadIdx.x; i < row.width;
       i += int64_t{kBlocks} * kThreads) {
    const Key key = key_of(row.a[i], i);
    if (key < below && key > best) best = key;
  }
  return best;
}

__device__ Key block_total(Key value, Key* place) {
  for (int offset = cuda::kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(cuda::kAllLanes, value, offset);
  }
  __syncthreads();
  if (threadIdx.x % cuda::kWarp == 0) place[threadIdx.x / cuda::kWarp] = value;
  __syncthreads();
  Key sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += place[w];
  return sum;
}

// s.top: this block's likeliest, 0 where there are no more.
__device__ void list_likeliest(Found& s, const Row& row, int rank, Key mine, int num_top) {
  for (int j = 0; j < num_top; ++j) {
    __syncthreads();
    const Key best = block_greatest(mine, s.warps);
    if (threadIdx.x == 0) s.top[j] = best;
    if (best != 0 && mine == best) mine = best_below(row, rank, best);
  }
  if (threadIdx.x == 0) s.top[num_top] = 0;
}

// The first warp of the first block: a lane a block.
__device__ void merge(const Found& s, const RowLogprobsArgs& args, int64_t t,
                      const LogSoftmax& values) {
  const int lane = static_cast<int>(threadIdx.x), num_top = static_cast<int>(args.num_top);
  int at = 0;
  Key key = lane < kBlocks ? cluster_key(&s.top[0], lane) : 0;
  for (int j = 0; j < num_top; ++j) {
    const Key best = warp_greatest(key, GreaterKey());
    if (lane == 0) {
      args.top[t * num_top + j] = best == 0 ? -1 : place_of(best);
      args.logprobs[t * (1 + num_top) + 1 + j] =
          best == 0 ? __uint_as_float(0x7fc00000u) : values.of(value_of(best));
    }
    if (best != 0 && key == best) key = cluster_key(&s.top[++at], lane);
  }
}

__global__ void __cluster_dims__(kBlocks, 1, 1) __launch_bounds__(kThreads)
    row_logprobs_kernel(const __grid_constant__ RowLogprobsArgs args) {
  __shared__ Found s;
  cuda::wait_for_earlier();
  const int rank = static_cast<int>(cuda::cluster_rank());
  const int64_t t = blockIdx.x / kBlocks;
  const Row row = {.a = args.logits + args.row[t] * args.width, .width = args.width};
  Key mine = 0;
  for_logits(row, rank, [&](int64_t i, float x, float) {
    if (i < 0) return;
    const Key key = key_of(x, i);
    mine = key > mine ? key : mine;
  });
  const Key of_block = block_greatest(mine, s.warps);
  if (threadIdx.x == 0) s.best = of_block;
  cuda::cluster_sync();
  Key best = 0;
  for (int r = 0; r < kBlocks; ++r) {
    const Key key = cluster_key(&s.best, r);
    best = key > best ? key : best;
  }
  LogSoftmax values;
  values.has_nan = best == kNan;
  values.best = values.has_nan ? 0 : value_of(best);
  Key mass = 0;
  for_logits(row, rank, [&](int64_t i, float x, float) {
    if (i >= 0 && !values.has_nan) mass += Key{softmax_mass(x, values.best)};
  });
  mass = block_total(mass, s.warps);
  if (threadIdx.x == 0) s.mass = mass;
  list_likeliest(s, row, rank, values.has_nan ? 0 : mine, static_cast<int>(args.num_top));
  cuda::cluster_sync();
  if (rank == 0 && threadIdx.x < cuda::kWarp) {
    Key total = 0;
    for (int r = 0; r < kBlocks; ++r) total += cluster_key(&s.mass, r);
    values.log_total = log_of_mass(total);
    merge(s, args, t, values);
    if (threadIdx.x == 0) {
      const int32_t id = args.ids[args.id_at[t]];
      args.logprobs[t * (1 + args.num_top)] =
          id < 0 ? __uint_as_float(0x7fc00000u) : values.of(row.a[id]);
    }
  }
  cuda::cluster_sync();  // the first block reads the lists of the others
}

bool supports(const RowLogprobsArgs& args) { return args.num_top <= kRowLogprobsTopMost; }

void run(const RowLogprobsArgs& args) {
  if (args.num_rows == 0) return;
  cuda::launch(cuda_stream(args.stream), "row_logprobs", row_logprobs_kernel,
               {cuda::grid(args.num_rows * kBlocks), kThreads}, args);
}

}  // namespace

std::span<const Kernel<RowLogprobsArgs>> row_logprobs_cuda_kernels() {
  static constexpr Kernel<RowLogprobsArgs> kTable[] = {
      {"row_logprobs.cuda", Isa::kReference, supports, run, DeviceKind::kCuda},
  };
  return kTable;
}

}  // namespace fathom::kernels
