// RMSNorm (Zhang & Sennrich 2019, arXiv:1910.07467, sec. 4; eps added; docs/spec/model.md 3.2):
//   y[t, i] = bf16( w[i] * (x[t, i] * r) ),  r = 1 / sqrt(mean_j(x[t, j]^2) + eps)
// y may be x.
#pragma once

#include "kernels/kernel_table.h"
#include "tensor/dtype.h"

namespace fathom::kernels {

struct RmsNormArgs {
  const Bf16* x;     // [num_tokens, hidden]
  const uint8_t* w;  // bf16 [hidden], any alignment
  Bf16* y;           // [num_tokens, hidden]
  int64_t num_tokens;
  int64_t hidden;
  float eps;
  Stream* stream;
};
std::span<const Kernel<RmsNormArgs>> rms_norm_kernels(DeviceKind kind);

}  // namespace fathom::kernels
