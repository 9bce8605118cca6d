#include "kernels/row_logprobs/rows.h"

namespace fathom::kernels {

std::span<const Kernel<RowLogprobsArgs>> row_logprobs_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return row_logprobs_cuda_kernels();
  static constexpr Kernel<RowLogprobsArgs> kTable[] = {
      {"row_logprobs.reference", Isa::kReference, supports_all<RowLogprobsArgs>,
       row_logprobs_reference},
  };
  return kTable;
}

}  // namespace fathom::kernels
