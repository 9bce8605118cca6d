// Rotary positions (Su et al. 2021, arXiv:2104.09864; YaRN frequencies from the model;
// docs/spec/model.md 3.6).
#pragma once

#include "kernels/kernel_table.h"
#include "tensor/dtype.h"

namespace fathom::kernels {

// cos and sin of fp32(position) * freq, the product in fp32, the functions rounded once.
struct RopeTableArgs {
  const int64_t* positions;  // [num_rows]
  const float* freqs;        // [half]
  float* cos;                // [num_rows, half]
  float* sin;                // [num_rows, half]
  int64_t num_rows;
  int64_t half;
  Stream* stream;
};
std::span<const Kernel<RopeTableArgs>> rope_table_kernels(DeviceKind kind);

// Rotates the last 2 half values of every head in place, adjacent pairs (a, b) -> (a c - b s, a s +
// b c), each bf16; `inverse` negates s.
struct RopeArgs {
  Bf16* x;           // [num_rows, num_heads, head_dim]
  const float* cos;  // [num_rows, half]
  const float* sin;
  int64_t num_rows;
  int64_t num_heads;
  int64_t head_dim;
  int64_t half;
  bool inverse;
  Stream* stream;
};
std::span<const Kernel<RopeArgs>> rope_kernels(DeviceKind kind);

}  // namespace fathom::kernels
