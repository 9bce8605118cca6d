// Rotates rows (kernels/rope) and packs them into a cache format (docs/spec/model.md 6.4, 5.8):
//   kFp8     groups of 32: s = pow2ceil(max(amax, 1e-4) * fp32(1/448)),     e4m3(x / s)
//   kFp4Kv   groups of 16: s = e4m3(max(amax, 6 * 2^-9) / 6),               e2m1(x / s)
//   kFp4Key  groups of 32: s = pow2ceil(max(amax, 6 * 2^-126) * fp32(1/6)), e2m1(x / s)
// The packed row is exactly the fake-quantized bf16 row of the model.
#pragma once

#include "kernels/formats.h"
#include "kernels/kernel_table.h"

namespace fathom::kernels {

struct PackRowsArgs {
  const Bf16* x;     // [num_rows, heads_per_row, dim], finite
  const float* cos;  // [num_rows, half], shared by the heads of a row
  const float* sin;
  uint8_t* const* rows;  // [num_rows] where heads_per_row packed rows go, one after the other
  RowFormat format;
  int64_t num_rows;
  int64_t heads_per_row;
  int64_t dim;   // a multiple of 32
  int64_t half;  // half of the rotated values; 0: no rotation
  Stream* stream;
};
std::span<const Kernel<PackRowsArgs>> pack_rows_kernels(DeviceKind kind);

}  // namespace fathom::kernels
