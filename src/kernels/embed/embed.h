// Token embedding into the residual stream (docs/spec/model.md 3.1): every copy of X[t] starts as
// table[ids[t]], or as a given row (image positions), and pre[t] as (1, 0, ..., 0).
#pragma once

#include "kernels/kernel_table.h"
#include "tensor/dtype.h"

namespace fathom::kernels {

struct EmbedArgs {
  const uint8_t* table;  // bf16 [vocab, hidden], any alignment
  const int32_t* ids;    // [num_tokens], each in [0, vocab)
  const Bf16* const*
      given;   // [num_tokens] rows of [hidden], nullptr = from the table; may be nullptr
  Bf16* x;     // [num_tokens, copies, hidden]
  float* pre;  // [num_tokens, copies]
  int64_t num_tokens;
  int64_t copies;
  int64_t hidden;
  Stream* stream;
};
std::span<const Kernel<EmbedArgs>> embed_kernels(DeviceKind kind);

}  // namespace fathom::kernels
