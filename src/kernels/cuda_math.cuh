// What the CUDA rows share: the reference's arithmetic on the device, sums over warps and blocks in
// a fixed order, and the packed formats.
//
// The device code is compiled without contraction of a * b + c (--fmad=false), as the host's is, so
// an expression rounds where it does in reference.cc.  Where fp64 sums are taken, their order
// differs from the reference's, which shows in about one value in 10^9 after the rounding to fp32.
#pragma once

#include "kernels/cuda_launch.cuh"
#include "kernels/formats.h"
#include "kernels/kernel_table.h"
#include "kernels/paged_rows.h"

namespace fathom::kernels::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

inline bool is_aligned(const void* p, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}
__device__ inline bool is_aligned_device(const void* p, unsigned bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline dim3 grid(int64_t x, int64_t y = 1) {
  return dim3(static_cast<unsigned>(x), static_cast<unsigned>(y));
}

// ---- functions rounded once (kernels/reference_math.h)
__device__ inline float exp_rounded(float x) {
  return static_cast<float>(exp(static_cast<double>(x)));
}
__device__ inline float sigmoid_rounded(float x) {
  return static_cast<float>(1.0 / (1.0 + exp(-static_cast<double>(x))));
}
__device__ inline float softplus_rounded(float x) {
  const double z = x;
  return static_cast<float>(z > 0 ? z + log1p(exp(-z)) : log1p(exp(z)));
}
__device__ inline float rsqrt_mean_rounded(double sum_of_squares, int64_t n, float eps) {
  return static_cast<float>(
      1.0 / sqrt(sum_of_squares / static_cast<double>(n) + static_cast<double>(eps)));
}

// Parameters at their natural alignment.
__device__ inline float param_bf16(const uint8_t* base, int64_t i) {
  return to_float(reinterpret_cast<const Bf16*>(base)[i]);
}
__device__ inline float param_f32(const uint8_t* base, int64_t i) {
  return reinterpret_cast<const float*>(base)[i];
}

// ---- sums: a butterfly over the lanes, then the warps in order
__device__ inline double warp_sum(double v) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) v += __shfl_xor_sync(kAllLanes, v, offset);
  return v;
}
// For blocks of kWarps warps; `shared` has kWarps places and is free again on return.
template <int kWarps>
__device__ double block_sum(double v, double* shared) {
  v = warp_sum(v);
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = v;
  __syncthreads();
  double sum = shared[0];
  for (int w = 1; w < kWarps; ++w) sum += shared[w];
  __syncthreads();
  return sum;
}

// ---- formats
__device__ inline float e2m1_to_float(unsigned code) {
  // 0 0.5 1 1.5 | 2 3 4 6: an exponent of two bits over one bit of mantissa.
  const unsigned e = (code >> 1) & 3u, m = code & 1u;
  const float v =
      e == 0 ? 0.5f * static_cast<float>(m) : __uint_as_float(((e + 126u) << 23) | (m << 22));
  return (code & 8u) != 0 ? -v : v;
}

// Of a finite code: moved into an fp32 it is 2^120 times smaller, subnormals too.
__device__ inline float e4m3_to_float_fast(unsigned code) {
  return __uint_as_float((code & 0x80u) << 24 | (code & 0x7fu) << 20) * 0x1p120f;
}

__device__ inline float fp8_row_value(const uint8_t* row, int64_t d, int64_t i) {
  return e4m3_to_float(row[i]) * ue8m0_to_float(row[d + i / 32]);
}
__device__ inline float fp4_kv_row_value(const uint8_t* row, int64_t d, int64_t i) {
  return e2m1_to_float((row[i / 2] >> (4 * (i & 1))) & 15u) * e4m3_to_float(row[d / 2 + i / 16]);
}

__device__ inline const uint8_t* paged_row(const PagedRows& rows, int64_t g) {
  return reinterpret_cast<const uint8_t*>(rows.blocks[g / rows.rows_per_block]) + rows.offset +
         g % rows.rows_per_block * rows.row_bytes;
}
__device__ inline const uint8_t* window_row(const WindowRows& rows, int64_t position) {
  return position >= rows.fresh_start ? rows.fresh + (position - rows.fresh_start) * rows.row_bytes
                                      : rows.ring + position % rows.ring_size * rows.row_bytes;
}

}  // namespace fathom::kernels::cuda
