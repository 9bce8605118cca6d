// Engram: n-gram tables looked up by token ids and gated into the stream
// (docs/spec/model.md 7.4, 7.5).
#pragma once

#include "kernels/kernel_table.h"
#include "tensor/dtype.h"

namespace fathom::kernels {

// e[t] = the rows of token t side by side, e4m3 codes times ue8m0 scales (one per 32), exact in
// bf16.
struct EngramGatherArgs {
  const uint8_t* codes;   // [table_rows, dim]
  const uint8_t* scales;  // [table_rows, dim / 32]
  const int64_t* rows;    // [num_tokens, rows_per_token]
  Bf16* e;                // [num_tokens, rows_per_token * dim]
  int64_t num_tokens;
  int64_t rows_per_token;
  int64_t dim;
  Stream* stream;
};
std::span<const Kernel<EngramGatherArgs>> engram_gather_kernels(DeviceKind kind);

// Per copy k, with key and value from kv = e wkv^T and w = q_weight * k_weight:
//   d = (sum_i X[k,i] w[k,i] key[k,i]) * rsqrt(mean X[k]^2 + eps) * rsqrt(mean key[k]^2 + eps) *
//   fp32(hidden^-0.5) gate = sigmoid( copysign( sqrt(max(|d|, 1e-6)), d ) ), 0 where live[t] is 0
//   X[k] = bf16( X[k] + gate * value )
struct EngramGateArgs {
  Bf16* x;         // [num_tokens, copies, hidden], read and written
  const Bf16* kv;  // [num_tokens, (copies + 1) * hidden]: keys of the copies, then the value
  const uint8_t* q_weight;  // bf16 [copies, hidden], any alignment
  const uint8_t* k_weight;
  const uint8_t* live;  // [num_tokens] 0 inside image spans; nullptr: all live
  int64_t num_tokens;
  int64_t copies;
  int64_t hidden;
  float eps;
  Stream* stream;
};
std::span<const Kernel<EngramGateArgs>> engram_gate_kernels(DeviceKind kind);

}  // namespace fathom::kernels
