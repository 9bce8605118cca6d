#include "kernels/index_select/rows.h"

namespace fathom::kernels {

std::span<const Kernel<IndexSelectArgs>> index_select_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return index_select_cuda_kernels();
  static constexpr Kernel<IndexSelectArgs> kTable[] = {
      {"index_select.reference", Isa::kReference, supports_all<IndexSelectArgs>,
       index_select_reference},
      {"index_select.plain", Isa::kPlain, supports_all<IndexSelectArgs>, index_select_plain},
      {"index_select.x86_avx2", Isa::kAvx2, supports_all<IndexSelectArgs>, index_select_avx2},
      {"index_select.x86_avx512", Isa::kAvx512, supports_all<IndexSelectArgs>, index_select_avx512},
  };
  return kTable;
}

}  // namespace fathom::kernels
