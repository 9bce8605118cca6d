#include "kernels/row_draw/rows.h"

namespace fathom::kernels {

std::span<const Kernel<RowDrawArgs>> row_draw_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return row_draw_cuda_kernels();
  static constexpr Kernel<RowDrawArgs> kTable[] = {
      {"row_draw.reference", Isa::kReference, supports_all<RowDrawArgs>, row_draw_reference},
  };
  return kTable;
}

}  // namespace fathom::kernels
