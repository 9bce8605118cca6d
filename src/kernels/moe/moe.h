// Mixture of experts: routing and the experts themselves (docs/spec/model.md 6.1, 6.2).
#pragma once

#include "kernels/formats.h"
#include "kernels/kernel_table.h"

namespace fathom::kernels {

// s = sqrt(softplus(z)); the k greatest of s + bias (ties: lower id); w = s / (sum of the picked s
// + 1e-20) * scale, the quotient only if `normalize`.  The picks of a row come in ascending expert
// id.
struct MoeRouteArgs {
  const float* z;           // [num_tokens, num_experts] gate logits
  const uint8_t* bias;      // fp32 [num_experts], any alignment
  const uint8_t* bias_vl;   // the same for rows inside image spans
  const uint8_t* is_image;  // [num_tokens] 0 or 1; nullptr: no image rows
  int32_t* expert;          // [num_tokens, k]
  float* weight;            // [num_tokens, k]
  int64_t num_tokens;
  int64_t num_experts;
  int64_t k;
  bool normalize;
  float scale;
  Stream* stream;
};
std::span<const Kernel<MoeRouteArgs>> moe_route_kernels(DeviceKind kind);

struct ExpertWeights {
  WeightMatrix w1;  // gate [width, hidden]
  WeightMatrix w3;  // up   [width, hidden]
  WeightMatrix w2;  // down [hidden, width]
};

// One expert on its input x (quantized as in kernels/linear):
//   g = bf16(x w1^T), a = bf16(x w3^T);  limit > 0: a = clamp(a, -limit, limit), g = min(g, limit)
//   e = bf16( bf16(g sigmoid(g) a * weight) w2^T )         (the shared expert has no weight)
//   y = bf16( sum of e over the picks in order of expert id, then the shared expert )
struct MoeExpertsArgs {
  const Bf16* x;                 // [num_tokens, hidden]
  const int32_t* expert;         // [num_tokens, k] ascending
  const float* weight;           // [num_tokens, k]
  const ExpertWeights* experts;  // [num_experts]
  DType routed = DType::kI8;     // of all matrices of `experts`
  ExpertWeights shared;          // its matrices are of one type too
  Bf16* y;                       // [num_tokens, hidden]
  int64_t num_tokens;
  int64_t num_experts;
  int64_t k;
  int64_t hidden;
  int64_t width;
  float limit;
  Numerics numerics = Numerics::kReference;
  Stream* stream;
};
std::span<const Kernel<MoeExpertsArgs>> moe_experts_kernels(DeviceKind kind);

}  // namespace fathom::kernels
