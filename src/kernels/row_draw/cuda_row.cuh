// A row of logits, shared out among the blocks of a cluster, and what they tell each other.
#pragma once

#include "kernels/cuda_async.cuh"
#include "kernels/cuda_math.cuh"
#include "kernels/row_draw/row_draw.h"

namespace fathom::kernels::row_draw {

constexpr int kBlocks = 8, kThreads = 512, kWarps = kThreads / cuda::kWarp;
constexpr int kBins = 2048, kShare = kBins / kBlocks, kListMost = kThreads;
constexpr double kBinsPerNat = 32;
using Key = unsigned long long;
constexpr Key kNan = ~Key{0};
constexpr unsigned kLowestOrder = ~0xff800000u;  // the order of -inf

__device__ inline Key key_of(float value, int64_t place) {
  if (value != value) return kNan;
  const unsigned bits = __float_as_uint(value + 0.0f);  // -0 is 0
  const unsigned order = bits >> 31 ? ~bits : bits | 0x80000000u;
  return Key{order} << 32 | (0xffffffffu - static_cast<unsigned>(place));
}
__device__ inline float value_of(Key key) {
  const auto order = static_cast<unsigned>(key >> 32);
  return __uint_as_float(order >> 31 ? order & 0x7fffffffu : ~order);
}
__device__ inline int32_t place_of(Key key) {
  return static_cast<int32_t>(0xffffffffu - static_cast<unsigned>(key));
}

struct Shared {
  Key bins[kBins];
  Key share[kShare];  // this block's bins, of the whole cluster
  Key list[kListMost];
  Key warps[kWarps];
  double values[kWarps];
  Key total;  // of the share
  Key best;   // of the block
  double value;
  int32_t token;
  unsigned num_listed;
  Key before;  // of the cut, in the block that has it
  int bin;
  Key floor;  // of the first block
};

__device__ inline Key cluster_key(const Key* place, int rank) {
  return static_cast<Key>(__double_as_longlong(cuda::cluster_load_double(
      reinterpret_cast<const double*>(place), static_cast<unsigned>(rank))));
}
__device__ inline unsigned cluster_unsigned(const unsigned* place, int rank) {
  return __float_as_uint(
      cuda::cluster_load(cuda::shared_address(place), static_cast<unsigned>(rank)));
}

// The logits of a row as the contract has them.
struct Row {
  const float* a;
  const float* b;
  const uint32_t* mask;
  int64_t width;
  const uint32_t* edited = nullptr;
  const LogitEdit* edits = nullptr;
  int num_edits = 0;
  float best = 0;
  bool has_infinity = false;

  __device__ float raw(int64_t i) const { return b == nullptr ? a[i] : a[i] + b[i]; }
  // Few logits are edited, so it is looked for.
  __device__ float edit(int64_t i, float x) const {
    int first = 0, end = num_edits;
    while (end - first > 1) {
      const int middle = (first + end) / 2;
      (edits[middle].id <= i ? first : end) = middle;
    }
    return edits[first].applied_to(x);
  }
  __device__ float masked(int64_t i, float x) const {
    const float none = __uint_as_float(0xff800000u);
    if (mask != nullptr && (mask[i / 32] >> (i % 32) & 1u) == 0) return none;
    if (edited != nullptr && (edited[i / 32] >> (i % 32) & 1u) != 0) x = edit(i, x);
    if (!has_infinity) return x;
    return x == __uint_as_float(0x7f800000u) ? 0 : none;
  }
};

// Calls fn(i, logit) for this thread's share; loads of several go out together.  All lanes of a
// warp call it the same number of times, if need be with i < 0.
template <class Fn>
__device__ void for_logits(const Row& row, int rank, const Fn& fn) {
  constexpr int kUnroll = 4;
  constexpr int64_t kStep = int64_t{kBlocks} * kThreads;
  const int64_t first = int64_t{rank} * kThreads + threadIdx.x;
  for (int64_t base = first - threadIdx.x % cuda::kWarp; base < row.width;
       base += kStep * kUnroll) {
    float x[kUnroll];
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const int64_t i = base + threadIdx.x % cuda::kWarp + k * kStep;
      x[k] = i < row.width ? row.raw(i) : 0;
    }
#pragma unroll
    for (int k = 0; k < kUnroll; ++k) {
      const int64_t i = base + threadIdx.x % cuda::kWarp + k * kStep;
      const bool is_there = i < row.width;
      fn(is_there ? i : -1, is_there ? row.masked(i, x[k]) : 0, x[k]);
    }
  }
}

template <class T, class Greater>
__device__ T warp_greatest(T x, const Greater& greater) {
  for (int offset = cuda::kWarp / 2; offset > 0; offset /= 2) {
    x = greater(x, __shfl_xor_sync(cuda::kAllLanes, x, offset));
  }
  return x;
}
struct GreaterKey {
  __device__ Key operator()(Key x, Key y) const { return x > y ? x : y; }
};

// Of the block, in its first warp; `place` is for one key a warp.
__device__ inline Key block_greatest(Key key, Key* place) {
  key = warp_greatest(key, GreaterKey());
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  if (lane == 0) place[warp] = key;
  __syncthreads();
  return warp_greatest(lane < kWarps ? place[lane] : 0, GreaterKey());
}

}  // namespace fathom::kernels::row_draw
