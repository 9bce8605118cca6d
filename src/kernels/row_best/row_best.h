// The likeliest token of rows of logits: what greedy choice takes, found where the logits are.
//   s[t, i] = a[a_row[t], i] + b[t, i]   in fp32
//   best[t] = the lowest i of the greatest s[t, i]; -1 if one is NaN, or all are -inf
#pragma once

#include "kernels/kernel_table.h"

namespace fathom::kernels {

struct RowBestArgs {
  const float* a;        // [.., width]
  const int64_t* a_row;  // [num_rows]; nullptr: its own row
  const float* b;        // [num_rows, width]; nullptr: 0
  int32_t* best;         // [num_rows]
  int64_t num_rows;      // 0 is a no-op
  int64_t width;         // > 0
  Stream* stream;
};
std::span<const Kernel<RowBestArgs>> row_best_kernels(DeviceKind kind);

}  // namespace fathom::kernels
