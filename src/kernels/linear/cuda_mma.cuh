// Products of stored weights on tensor cores; shared by linear and moe.
//
// Widening is exact: every e4m3, e2m1 and bf16 weight times its power-of-two scale is a bf16 value,
// and so is an input rounded to e4m3 with a scale.  So both sides go to mma as bf16 with fp32 sums,
// and what a row of y gets differs from the reference by the rounding of those sums only.
//
// The order rule: the columns of a matrix are cut in slices of 32; warp w of 8 sums the slices
// [S w / 8, S (w + 1) / 8) in ascending order, 16 columns an mma; the eight sums are added in order
// of w.  This depends on the shape only.  Weights are the A operand (16 rows), tokens the columns
// of B, so one instruction does the same for a token whatever its neighbours are: the bits of a row
// do not depend on the batch.
//
// Within 8 columns the order is 0 4 1 5 2 6 3 7 on both sides: then the nibbles, bytes or halves
// that share a register come out of a stored word with few operations.  Inputs are stored so.
#pragma once

#include "kernels/cuda_math.cuh"

namespace fathom::kernels::cuda {

constexpr int kMmaRows = 16;   // of weights: rows of A
constexpr int kMmaTokens = 8;  // columns of B
constexpr int kMmaWarps = 8;
constexpr int kMmaThreads = kMmaWarps * kWarp;
constexpr int kSlice = 32;  // columns

// Eight columns of a row as four bf16 pairs (j, j + 4).
struct Pairs {
  unsigned p[4];
};

__device__ inline unsigned mul_bf16x2(unsigned a, unsigned b) {
  unsigned d;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

__device__ inline void mma_bf16(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// v times 2^kShift times the ue8m0 scale, in one product where the factor is a bf16 value.
template <unsigned kShift>
__device__ inline unsigned scale_pair(unsigned v, unsigned scale) {
  const unsigned exponent = kShift + scale;
  if (exponent <= 254u) return mul_bf16x2(v, (exponent << 7) * 0x10001u);
  return mul_bf16x2(mul_bf16x2(v, ((127u + kShift) << 7) * 0x10001u), (scale << 7) * 0x10001u);
}

// Columns [32 slice + 8 q, + 8) of a row.
template <DType kDtype>
__device__ inline Pairs load_weights(const WeightMatrix& w, int64_t row, int64_t slice, int q) {
  Pairs out;
  if constexpr (kDtype == DType::kF8E4M3) {
    const auto* at = reinterpret_cast<const uint2*>(w.data + row * w.cols + kSlice * slice) + q;
    const uint2 codes = __ldcs(at);
    const unsigned scale = w.scale[row / 32 * (w.cols / kSlice) + slice];
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      // An e4m3 code, moved, is a bf16 2^120 times smaller; subnormals too.
      const unsigned v = __byte_perm(codes.x, codes.y, j * 0x11u + (4u + j) * 0x1100u);
      out.p[j] = scale_pair<120>((v & 0x80008000u) | ((v >> 4) & 0x07f007f0u), scale);
    }
  } else if constexpr (kDtype == DType::kI8) {
    const auto* at =
        reinterpret_cast<const unsigned*>(w.data + row * (w.cols / 2) + kSlice / 2 * slice) + q;
    const unsigned codes = __ldcs(at);
    const unsigned scale = w.scale[row * (w.cols / kSlice) + slice];
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      // Likewise an e2m1 code, 2^126 times smaller.
      const unsigned v = codes >> (4 * j);
      out.p[j] = scale_pair<126>(((v << 12) & 0x80008000u) | ((v << 6) & 0x01c001c0u), scale);
    }
  } else {
    const auto* at = reinterpret_cast<const uint4*>(w.data + (row * w.cols + kSlice * slice) * 2);
    const uint4 v = __ldcs(at + q);
    out.p[0] = __byte_perm(v.x, v.z, 0x5410u);
    out.p[1] = __byte_perm(v.x, v.z, 0x7632u);
    out.p[2] = __byte_perm(v.y, v.w, 0x5410u);
    out.p[3] = __byte_perm(v.y, v.w, 0x7632u);
  }
  return out;
}

// Rows [row, row + 16) of a matrix times kTiles x 8 tokens, this warp's slices.  x: of the tokens
// lane / 4, lane / 4 + 8, ..., in stored order.
template <DType kDtype, int kTiles>
__device__ void multiply_slices(const WeightMatrix& w, int64_t row, const Bf16* const (&x)[kTiles],
                                float (&sum)[kTiles][4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t warp = threadIdx.x / kWarp, q = lane % 4;
  const int64_t last_row = w.rows - 1, slices = w.cols / kSlice;
  const int64_t low = row + lane / 4 < last_row ? row + lane / 4 : last_row;
  const int64_t high = row + lane / 4 + 8 < last_row ? row + lane / 4 + 8 : last_row;
  const int64_t end = slices * (warp + 1) / kMmaWarps;
#pragma unroll 4
  for (int64_t s = slices * warp / kMmaWarps; s < end; ++s) {
    const Pairs a = load_weights<kDtype>(w, low, s, static_cast<int>(q));
    const Pairs b = load_weights<kDtype>(w, high, s, static_cast<int>(q));
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const uint4 v = *(reinterpret_cast<const uint4*>(x[n] + kSlice * s) + q);
      mma_bf16(sum[n], a.p[0], b.p[0], a.p[1], b.p[1], v.x, v.y);
      mma_bf16(sum[n], a.p[2], b.p[2], a.p[3], b.p[3], v.z, v.w);
    }
  }
}

// The same for any type, summed over the warps: out [16, kTiles x 8], for every thread to read.
// `shared` has [kMmaWarps, 16, kTiles x 8] places and may be `out`'s only after a barrier.
template <int kTiles>
__device__ void multiply_rows(const WeightMatrix& w, int64_t row, const Bf16* const (&x)[kTiles],
                              float* shared, float* out) {
  constexpr int kTokens = kTiles * kMmaTokens;
  float sum[kTiles][4] = {};
  if (w.dtype == DType::kF8E4M3) {
    multiply_slices<DType::kF8E4M3>(w, row, x, sum);
  } else if (w.dtype == DType::kI8) {
    multiply_slices<DType::kI8>(w, row, x, sum);
  } else {
    multiply_slices<DType::kBf16>(w, row, x, sum);
  }
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  __syncthreads();  // others may still read `shared`
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int r = lane / 4 + (i / 2) * 8, t = n * kMmaTokens + lane % 4 * 2 + i % 2;
      shared[(warp * kMmaRows + r) * kTokens + t] = sum[n][i];
    }
  }
  __syncthreads();
  for (int e = static_cast<int>(threadIdx.x); e < kMmaRows * kTokens; e += kMmaThreads) {
    float total = shared[e];
#pragma unroll
    for (int v = 1; v < kMmaWarps; ++v) total += shared[v * kMmaRows * kTokens + e];
    out[e] = total;
  }
  __syncthreads();
}

inline bool mma_supports(const WeightMatrix& w) {
  return w.cols % kSlice == 0 && is_aligned(w.data, 16);
}

// out [rows, cols] = x in stored order, rounded to e4m3 with a scale per 32 columns if `quantize`.
// cols: a multiple of 32; out: aligned to 16, may be x if x_stride is cols.
void enqueue_store_inputs(CudaStream& stream, const Bf16* x, int64_t x_stride, int64_t rows,
                          int64_t cols, bool quantize, Bf16* out);

}  // namespace fathom::kernels::cuda
