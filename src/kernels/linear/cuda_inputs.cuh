// One chunk of one row of inputs, by a warp.
#pragma once

#include "kernels/linear/cuda_stored.cuh"

namespace fathom::kernels::cuda {

// x rounded to e4m3 with one scale for `amax`, its group's greatest magnitude.
__device__ inline float fake_quantize(float x, float amax) {
  constexpr float kInvMax = 1.0f / 448.0f;
  const float s = pow2ceil(fmaxf(amax, 1e-4f) * kInvMax);
  return e4m3_to_float(float_to_e4m3(x / s)) * s;
}

// Columns 2 lane and 2 lane + 1 of the chunk, as a word; 0 past the end of the row.
__device__ inline unsigned load_input_chunk(const Bf16* x, int64_t cols, int chunk, bool quantize) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t c = int64_t{kChunk} * chunk + 2 * lane;
  Bf16 low{0}, high{0};
  if (c < cols) {
    low = x[c];
    high = x[c + 1];
  }
  if (quantize) {
    float amax = fmaxf(fabsf(to_float(low)), fabsf(to_float(high)));
    for (int offset = 8; offset > 0; offset /= 2) {
      amax = fmaxf(amax, __shfl_xor_sync(kAllLanes, amax, offset));
    }
    low = to_bf16(fake_quantize(to_float(low), amax));
    high = to_bf16(fake_quantize(to_float(high), amax));
  }
  return low.bits | static_cast<unsigned>(high.bits) << 16;
}

// Writes it to a row of stored inputs, 4 bytes a lane.
__device__ inline void store_input_chunk(unsigned word, const StoredInputs& out, int64_t row,
                                         int chunk) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  // Lane 4 u + q writes the columns 16 q + 8 (u / 4) + u % 4 and that + 4.
  const int u = lane / 4, q = lane % 4;
  const int first = 16 * q + 8 * (u / 4) + u % 4;
  const unsigned a = __shfl_sync(kAllLanes, word, first / 2);
  const unsigned b = __shfl_sync(kAllLanes, word, first / 2 + 2);
  const unsigned value = __byte_perm(a, b, u % 2 == 0 ? 0x5410u : 0x7632u);
  const int unit = u ^ static_cast<int>(row % kSwizzleRows);
  *reinterpret_cast<unsigned*>(out.at(chunk, row) + unit * 16 + q * 4) = value;
}

}  // namespace fathom::kernels::cuda
