#include "kernels/rms_norm/rows.h"

namespace fathom::kernels {

std::span<const Kernel<RmsNormArgs>> rms_norm_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return rms_norm_cuda_kernels();
  static constexpr Kernel<RmsNormArgs> kTable[] = {
      {"rms_norm.reference", Isa::kReference, supports_all<RmsNormArgs>, rms_norm_reference},
      {"rms_norm.plain", Isa::kPlain, supports_all<RmsNormArgs>, rms_norm_plain},
      {"rms_norm.x86_avx2", Isa::kAvx2, supports_all<RmsNormArgs>, rms_norm_avx2},
      {"rms_norm.x86_avx512", Isa::kAvx512, supports_all<RmsNormArgs>, rms_norm_avx512},
  };
  return kTable;
}

}  // namespace fathom::kernels
