// Manifold-constrained hyper-connections, the single-pass form of V4.1 (docs/spec/model.md 3.3).
// The residual stream X is [num_tokens, copies, hidden] bf16; m = copies.
#pragma once

#include "kernels/kernel_table.h"
#include "tensor/dtype.h"

namespace fathom::kernels {

// The mixing weights of one sublayer, from the stream at its entrance:
//   v = X flattened, y = (fn v) / sqrt(mean(v^2) + norm_eps)
//   pre  = sigmoid(y[0:m] scale[0] + base[0:m]) + hc_eps
//   post = 2 sigmoid(y[m:2m] scale[1] + base[m:2m])
//   comb = Sinkhorn(y[2m:] scale[2] + base[2m:]), m x m row-major, `iters` rounds, hc_eps in each
//   quotient
struct HcMixArgs {
  const Bf16* x;         // [num_tokens, copies, hidden]
  const uint8_t* fn;     // fp32 [(2 + m) m, m hidden], any alignment (safetensors promises none)
  const uint8_t* base;   // fp32 [(2 + m) m]
  const uint8_t* scale;  // fp32 [3]
  float* pre;            // [num_tokens, m]
  float* post;           // [num_tokens, m]
  float* comb;           // [num_tokens, m, m]
  int64_t num_tokens;
  int64_t copies;  // 1 .. kMaxCopies
  int64_t hidden;
  int32_t sinkhorn_iters;
  float norm_eps;
  float hc_eps;
  Stream* stream;
};
inline constexpr int64_t kMaxCopies = 8;
std::span<const Kernel<HcMixArgs>> hc_mix_kernels(DeviceKind kind);

// The input of a sublayer: the copies collapsed, then normed.
//   h = bf16( sum_k pre[k] X[k] ),  u = rms_norm(h; w, eps), or u = h without w
struct HcInArgs {
  const Bf16* x;     // [num_tokens, copies, hidden]
  const float* pre;  // [num_tokens, copies]
  const uint8_t* w;  // bf16 [hidden], any alignment; nullptr: no norm
  Bf16* u;           // [num_tokens, hidden]
  int64_t num_tokens;
  int64_t copies;
  int64_t hidden;
  float eps;
  Stream* stream;
};
std::span<const Kernel<HcInArgs>> hc_in_kernels(DeviceKind kind);

// The output of a sublayer back into the stream, in place (note the first index of comb):
//   X[k] = bf16( post[k] y + sum_j comb[j][k] X[j] )
struct HcOutArgs {
  const Bf16* y;      // [num_tokens, hidden]
  const float* post;  // [num_tokens, copies]
  const float* comb;  // [num_tokens, copies, copies]
  Bf16* x;            // [num_tokens, copies, hidden], read and written
  int64_t num_tokens;
  int64_t copies;
  int64_t hidden;
  Stream* stream;
};
std::span<const Kernel<HcOutArgs>> hc_out_kernels(DeviceKind kind);

}  // namespace fathom::kernels
