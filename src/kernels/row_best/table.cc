#include "kernels/row_best/rows.h"

namespace fathom::kernels {

std::span<const Kernel<RowBestArgs>> row_best_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return row_best_cuda_kernels();
  static constexpr Kernel<RowBestArgs> kTable[] = {
      {"row_best.reference", Isa::kReference, supports_all<RowBestArgs>, row_best_reference},
  };
  return kTable;
}

}  // namespace fathom::kernels
