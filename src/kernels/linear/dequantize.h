// Stored weights and quantized inputs as fp32, exactly.
#pragma once

#include "kernels/formats.h"

namespace fathom::kernels {

// out[0 .. w.cols) = row r of w with its scales.
void dequantize_row(const WeightMatrix& w, int64_t r, float* out);

// out[i] = x[i] rounded to e4m3 with one ue8m0 scale per 32 values and back
// (docs/spec/model.md 6.4). n is a multiple of 32.
void fake_quantize_row(const Bf16* x, int64_t n, float* out);

// The same with int8 and one fp32 scale per 32 values (int8.h).
void fake_int8_row(const Bf16* x, int64_t n, float* out);

}  // namespace fathom::kernels
