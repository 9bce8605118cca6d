#include "kernels/linear/rows.h"

namespace fathom::kernels {

std::span<const Kernel<LinearArgs>> linear_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return linear_cuda_kernels();
  static constexpr Kernel<LinearArgs> kTable[] = {
      {"linear.reference", Isa::kReference, supports_all<LinearArgs>, linear_reference},
      {"linear.plain", Isa::kPlain, lane_linear_supports, linear_plain},
      {"linear.int8_plain", Isa::kPlain, int8_linear_supports, linear_int8_plain},
      {"linear.x86_avx2", Isa::kAvx2, lane_linear_supports, linear_avx2},
      {"linear.int8_avx2", Isa::kAvx2, int8_linear_supports, linear_int8_avx2},
      {"linear.int8_avxvnni", Isa::kAvxVnni, int8_linear_supports, linear_int8_avxvnni},
      {"linear.x86_avx512", Isa::kAvx512, lane_linear_supports, linear_avx512},
      {"linear.int8_avx512", Isa::kAvx512, int8_linear_supports, linear_int8_avx512},
      {"linear.int8_amx", Isa::kAmx, int8_linear_supports, linear_int8_amx},
  };
  return kTable;
}

}  // namespace fathom::kernels
