// Attention of many query heads over one shared key = value row per position: the window rows
// first_window .. position, then the chosen compressed rows, with a sink in the denominator
// (docs/spec/model.md 5.5).
//   s_k = (q . key_k) * scale,  M = max_k s_k
//   o   = bf16( sum_k bf16(exp(s_k - M)) key_k / (sum_k exp(s_k - M) + exp(sink - M)) )
// No key at all gives 0.
#pragma once

#include "kernels/formats.h"
#include "kernels/kernel_table.h"
#include "kernels/paged_rows.h"

namespace fathom::kernels {

struct SparseAttentionArgs {
  const Bf16* q;                // [num_rows, num_heads, dim], rotated
  const uint8_t* sink;          // fp32 [num_heads], any alignment
  Bf16* o;                      // [num_rows, num_heads, dim], not rotated back; may be q
  const int32_t* segment;       // [num_rows]
  const int64_t* position;      // [num_rows]
  const int64_t* first_window;  // [num_rows], <= position
  int64_t max_window;           // no row has more window rows
  const WindowRows* window;     // [num_segments], kFp8
  const PagedRows* compressed;  // [num_segments], kFp4Kv; nullptr: a layer without
  const int32_t* chosen;        // [num_rows, topk] rows of `compressed`, ascending
  const int32_t* num_chosen;    // [num_rows]
  int64_t topk;
  int64_t num_rows;
  int64_t num_heads;
  int64_t dim;  // a multiple of 32
  float scale;
  Numerics numerics = Numerics::kReference;  // kInt8 lets fast rows sum in fp32
  Stream* stream;
};
std::span<const Kernel<SparseAttentionArgs>> sparse_attention_kernels(DeviceKind kind);

}  // namespace fathom::kernels
