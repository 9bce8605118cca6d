// The oracle's arithmetic (docs/spec/tiny-config.md "The rule"): functions and sums take fp32
// values, work in fp64 and round once to fp32, so that neither the order of a sum nor the library
// shows.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

namespace fathom::kernels {

inline float exp_rounded(float x) { return static_cast<float>(std::exp(static_cast<double>(x))); }
inline float sigmoid_rounded(float x) {
  return static_cast<float>(1.0 / (1.0 + std::exp(-static_cast<double>(x))));
}
inline float softplus_rounded(float x) {
  const double z = x;
  return static_cast<float>(z > 0 ? z + std::log1p(std::exp(-z)) : std::log1p(std::exp(z)));
}
// 1 / sqrt(sum / n + eps)
inline float rsqrt_mean_rounded(double sum_of_squares, int64_t n, float eps) {
  return static_cast<float>(
      1.0 / std::sqrt(sum_of_squares / static_cast<double>(n) + static_cast<double>(eps)));
}

// sum_i a[i] b[i] in fp64.  Products of fp32 values are exact there, so lanes and fma do not show
// either; uses AVX2 where the CPU has it.
double dot64(const float* a, const float* b, int64_t n);
// y[i] += a x[i] in fp64.
void axpy64(float a, const float* x, double* y, int64_t n);

// Stored parameters may lie at any address.
inline float load_f32(const uint8_t* base, int64_t i) {
  float v;
  std::memcpy(&v, base + i * 4, 4);
  return v;
}
inline float load_bf16(const uint8_t* base, int64_t i) {
  Bf16 v;
  std::memcpy(&v, base + i * 2, 2);
  return to_float(v);
}

}  // namespace fathom::kernels
