#include "kernels/pack_rows/rows.h"

namespace fathom::kernels {

std::span<const Kernel<PackRowsArgs>> pack_rows_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return pack_rows_cuda_kernels();
  static constexpr Kernel<PackRowsArgs> kTable[] = {
      {"pack_rows.reference", Isa::kReference, supports_all<PackRowsArgs>, pack_rows_reference},
      {"pack_rows.plain", Isa::kPlain, supports_all<PackRowsArgs>, pack_rows_plain},
      {"pack_rows.x86_avx2", Isa::kAvx2, supports_all<PackRowsArgs>, pack_rows_avx2},
      {"pack_rows.x86_avx512", Isa::kAvx512, supports_all<PackRowsArgs>, pack_rows_avx512},
  };
  return kTable;
}

}  // namespace fathom::kernels
