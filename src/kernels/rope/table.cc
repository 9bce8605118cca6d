#include "kernels/rope/rows.h"

namespace fathom::kernels {

std::span<const Kernel<RopeTableArgs>> rope_table_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return rope_table_cuda_kernels();
  static constexpr Kernel<RopeTableArgs> kTable[] = {
      {"rope_table.reference", Isa::kReference, supports_all<RopeTableArgs>, rope_table_reference},
      {"rope_table.plain", Isa::kPlain, supports_all<RopeTableArgs>, rope_table_plain},
  };
  return kTable;
}

std::span<const Kernel<RopeArgs>> rope_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return rope_cuda_kernels();
  static constexpr Kernel<RopeArgs> kTable[] = {
      {"rope.reference", Isa::kReference, supports_all<RopeArgs>, rope_reference},
      {"rope.plain", Isa::kPlain, supports_all<RopeArgs>, rope_plain},
      {"rope.x86_avx2", Isa::kAvx2, supports_all<RopeArgs>, rope_avx2},
      {"rope.x86_avx512", Isa::kAvx512, supports_all<RopeArgs>, rope_avx512},
  };
  return kTable;
}

}  // namespace fathom::kernels
