// Products for many tokens on Hopper: a block of two warpgroups makes 2 x 64 rows of weights times
// 128 tokens with wgmma, by the order rule of cuda_stored.cuh.
//
// Weights go from memory to registers, are widened there, and are the operand in registers; the
// inputs come to shared memory by bulk copies through a ring of stages.  A warpgroup widens one
// chunk while the tensor cores work on its last, and the two take turns at them.  Limit: the rate
// of the tensor cores; then the L2, 24 KB a chunk of 128 x 128 products.
#pragma once

#include "kernels/cuda_wgmma.cuh"
#include "kernels/linear/cuda_stored.cuh"

namespace fathom::kernels::cuda {

constexpr int kWideGroups = 2;
constexpr int kWideThreads = kWideGroups * 128;
constexpr int kWideRows = 64 * kWideGroups;
constexpr int kWideTokens = 128;
constexpr int kWideStages = 8;  // deep enough for the latency of memory
constexpr int kWideStageBytes = kWideTokens * kChunk * 2;
constexpr int kWidePitch = kWideRows + 4;  // of a token's sums
constexpr int kWideRing = kWideStages * kWideStageBytes;
constexpr int kWideSums = kWideTokens * kWidePitch * 4;
constexpr int kWideShared = 1024 + (kWideRing > kWideSums ? kWideRing : kWideSums);

struct WideShared {
  uint64_t* full;   // [kWideStages]
  uint64_t* empty;  // [kWideStages]
  std::byte* ring;  // [kWideStages][kWideTokens][64]
  float* sums;      // [kWideTokens][kWidePitch], in place of the ring
};
__device__ inline WideShared wide_shared(std::byte* memory) {
  auto* barriers = reinterpret_cast<uint64_t*>(memory);
  return {barriers, barriers + kWideStages, memory + 1024, reinterpret_cast<float*>(memory + 1024)};
}

// A tile of tokens.
struct WideInputs {
  StoredInputs x;
  int64_t row;  // of x, a multiple of 8
  int tokens;   // 1 .. kWideTokens
  int chunks;   // of a row
};

// One thread: starts the copy of a chunk.
__device__ inline void copy_chunk(const WideInputs& in, int chunk, const WideShared& shared) {
  const int stage = chunk % kWideStages;
  const auto bytes = static_cast<unsigned>(in.tokens * kRowBytes);
  barrier_expect(shared.full + stage, bytes);
  bulk_copy(shared.ring + stage * kWideStageBytes, in.x.at(chunk, in.row), bytes,
            shared.full + stage);
}

// What a warpgroup does for one chunk.  `pieces` is widened and then gets the chunk two later.
template <DType kDtype>
__device__ inline void wide_step(const LaneRows<kDtype>& rows, const WideInputs& in,
                                 const WideShared& shared, int c, bool first,
                                 LaneChunk<kDtype>& piece, Operands& a, float (&sum)[64]) {
  widen(piece, a);
  piece = rows.load(c + 2);
  rows.prefetch(c + 8);
  const int stage = c % kWideStages;
  barrier_wait(shared.full + stage, static_cast<unsigned>(c / kWideStages % 2));
  const unsigned x = shared_address(shared.ring) + static_cast<unsigned>(stage * kWideStageBytes);
  wgmma_fence();
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    wgmma_128(sum, a[s], matrix_descriptor(x + static_cast<unsigned>(s * 32), 1024),
              !first || s > 0);
  }
  wgmma_commit();
  wgmma_wait<1>();  // the chunk before this one is done
  if (c > 0 && threadIdx.x % 128 == 0) barrier_arrive(shared.empty + (c - 1) % kWideStages);
  // The stage of the chunk before that has been left by both groups, or soon is.
  const int next = c - 2 + kWideStages;
  if (threadIdx.x == 0 && c >= 2 && next < in.chunks) {
    barrier_wait(shared.empty + next % kWideStages,
                 static_cast<unsigned>((c - 2) / kWideStages % 2));
    copy_chunk(in, next, shared);
  }
}

template <DType kDtype>
__device__ inline void multiply_columns(const WeightMatrix& w, int64_t row, const WideInputs& in,
                                        const WideShared& shared, float (&total)[64]) {
  const LaneRows<kDtype> rows(w, row + static_cast<int>(threadIdx.x) % 128 / kWarp * 16);
  LaneChunk<kDtype> even = rows.load(0), odd = rows.load(1);
  Operands a, b;
  float sum[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) total[i] = 0;
  for (int part = 0; part < kParts; ++part) {
    const int begin = part_begin(in.chunks, part), end = part_begin(in.chunks, part + 1);
    if (begin == end) continue;
    for (int c = begin; c < end; c += 2) {
      wide_step<kDtype>(rows, in, shared, c, c == begin, even, a, sum);
      if (c + 1 < end) wide_step<kDtype>(rows, in, shared, c + 1, false, odd, b, sum);
    }
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < 64; ++i) total[i] += sum[i];
    if ((end - begin) % 2 != 0) {
      const LaneChunk<kDtype> swap = even;
      even = odd;
      odd = swap;
    }
  }
}

// Each warpgroup: 64 rows of its `w` from `row` on, times the tokens.  Leaves the products in
// shared.sums, those of warpgroup g at rows 64 g, for every thread to read.  All warps must know
// the type when they are compiled: behind a branch on it ptxas would serialize wgmma.
template <DType kDtype>
__device__ inline void multiply_wide(const WeightMatrix& w, int64_t row, const WideInputs& in,
                                     const WideShared& shared) {
  if (threadIdx.x == 0) {
    for (int s = 0; s < kWideStages; ++s) {
      barrier_init(shared.full + s, 1);
      barrier_init(shared.empty + s, kWideGroups);
    }
    barrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int c = 0; c < kWideStages && c < in.chunks; ++c) copy_chunk(in, c, shared);
  }
  float total[64];
  multiply_columns<kDtype>(w, row, in, shared, total);
  __syncthreads();  // the ring is free
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
#pragma unroll
  for (int n = 0; n < 16; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = warp * 16 + lane / 4 + i / 2 * 8, t = n * 8 + lane % 4 * 2 + i % 2;
      shared.sums[t * kWidePitch + r] = total[4 * n + i];
    }
  }
  __syncthreads();
}

}  // namespace fathom::kernels::cuda
