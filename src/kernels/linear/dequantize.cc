#include "kernels/linear/dequantize.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference_math.h"

namespace fathom::kernels {

void dequantize_row(const WeightMatrix& w, int64_t r, float* out) {
  switch (w.dtype) {
    case DType::kF8E4M3: {
      const uint8_t* scale = w.scale + (r / 32) * ((w.cols + 31) / 32);
      const uint8_t* code = w.data + r * w.cols;
      for (int64_t i = 0; i < w.cols; ++i) {
        out[i] = e4m3_to_float(code[i]) * ue8m0_to_float(scale[i / 32]);
      }
      return;
    }
    case DType::kI8: {
      const uint8_t* scale = w.scale + r * (w.cols / 32);
      const uint8_t* code = w.data + r * (w.cols / 2);
      for (int64_t i = 0; i < w.cols; ++i) {
        out[i] = kE2m1Values[(code[i / 2] >> (4 * (i & 1))) & 15] * ue8m0_to_float(scale[i / 32]);
      }
      return;
    }
    default:
      for (int64_t i = 0; i < w.cols; ++i) out[i] = load_bf16(w.data, r * w.cols + i);
  }
}

void fake_quantize_row(const Bf16* x, int64_t n, float* out) {
  constexpr float kInvMax = 1.0f / 448.0f;
  for (int64_t g = 0; g < n; g += 32) {
    float amax = 1e-4f;
    for (int64_t i = g; i < g + 32; ++i) amax = std::max(amax, std::fabs(to_float(x[i])));
    const float s = pow2ceil(amax * kInvMax);
    for (int64_t i = g; i < g + 32; ++i)
      out[i] = e4m3_to_float(float_to_e4m3(to_float(x[i]) / s)) * s;
  }
}

void fake_int8_row(const Bf16* x, int64_t n, float* out) {
  for (int64_t g = 0; g < n; g += 32) {
    float a = 1e-20f;
    for (int64_t i = g; i < g + 32; ++i) a = std::max(a, std::fabs(to_float(x[i])));
    const float inverse = 127.0f / a;
    for (int64_t i = g; i < g + 32; ++i) {
      out[i] = std::nearbyint(to_float(x[i]) * inverse) * (a / 127.0f);
    }
  }
}

}  // namespace fathom::kernels
