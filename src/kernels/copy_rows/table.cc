#include "kernels/copy_rows/rows.h"

namespace fathom::kernels {

std::span<const Kernel<CopyRowsArgs>> copy_rows_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return copy_rows_cuda_kernels();
  static constexpr Kernel<CopyRowsArgs> kTable[] = {
      {"copy_rows.reference", Isa::kReference, supports_all<CopyRowsArgs>, copy_rows_reference},
  };
  return kTable;
}

}  // namespace fathom::kernels
