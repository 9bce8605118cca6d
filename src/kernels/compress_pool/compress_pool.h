// Pools a group of `ratio` tokens into one latent (docs/spec/model.md 5.3), per channel:
//   a = softmax over the group's s values,  y = bf16( sum_r a_r k_r )
#pragma once

#include "kernels/kernel_table.h"
#include "tensor/dtype.h"

namespace fathom::kernels {

struct CompressPoolArgs {
  const float* const* k;  // [num_groups, ratio] rows of [dim] fp32
  const float* const* s;  // likewise
  Bf16* y;                // [num_groups, dim]
  int64_t num_groups;
  int64_t ratio;  // 2 .. 8
  int64_t dim;
  Stream* stream;
};
std::span<const Kernel<CompressPoolArgs>> compress_pool_kernels(DeviceKind kind);

}  // namespace fathom::kernels
