// Stored weights and quantized inputs on the device; shared by linear and moe.
#pragma once

#include "kernels/cuda_math.cuh"

namespace fathom::kernels::cuda {

// Value (r, i) of a stored matrix.
template <DType kDtype>
__device__ inline float weight_value(const WeightMatrix& w, int64_t r, int64_t i) {
  if constexpr (kDtype == DType::kF8E4M3) {
    return e4m3_to_float(w.data[r * w.cols + i]) *
           ue8m0_to_float(w.scale[r / 32 * ((w.cols + 31) / 32) + i / 32]);
  } else if constexpr (kDtype == DType::kI8) {
    const unsigned pair = w.data[r * (w.cols / 2) + i / 2];
    return e2m1_to_float((pair >> (4 * (i & 1))) & 15u) *
           ue8m0_to_float(w.scale[r * (w.cols / 32) + i / 32]);
  } else {
    return param_bf16(w.data, r * w.cols + i);
  }
}

// fn(std::integral_constant<DType>) for the type of w: the choice stays outside of loops.
template <DType kDtype>
struct DtypeTag {
  static constexpr DType value = kDtype;
};
template <class Fn>
__device__ inline void with_dtype(DType dtype, Fn&& fn) {
  if (dtype == DType::kF8E4M3) {
    fn(DtypeTag<DType::kF8E4M3>{});
  } else if (dtype == DType::kI8) {
    fn(DtypeTag<DType::kI8>{});
  } else {
    fn(DtypeTag<DType::kBf16>{});
  }
}

// sums[t] = row r of w times row t of x [kTokens, w.cols], in fp64 (every product is exact there).
// One warp, lane = column mod 32; every lane gets the sums.
template <int kTokens>
__device__ void exact_dots(const WeightMatrix& w, int64_t r, const Bf16* x, int64_t x_stride,
                           int num_tokens, double* sums) {
#pragma unroll
  for (int t = 0; t < kTokens; ++t) sums[t] = 0;
  with_dtype(w.dtype, [&](auto tag) {
    for (int64_t i = threadIdx.x % kWarp; i < w.cols; i += kWarp) {
      const double v = weight_value<decltype(tag)::value>(w, r, i);
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        if (t < num_tokens) sums[t] += v * static_cast<double>(to_float(x[t * x_stride + i]));
      }
    }
  });
#pragma unroll
  for (int t = 0; t < kTokens; ++t) sums[t] = warp_sum(sums[t]);
}

// out [rows, cols] = x rounded to e4m3 with a ue8m0 scale per 32 columns (docs/spec/model.md 6.4);
// exact in bf16.  out may be x.  cols: a multiple of 32.
void enqueue_fake_quantize(CudaStream& stream, const Bf16* x, int64_t x_stride, int64_t rows,
                           int64_t cols, Bf16* out);

}  // namespace fathom::kernels::cuda
