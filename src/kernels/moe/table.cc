#include "kernels/moe/rows.h"

namespace fathom::kernels {

std::span<const Kernel<MoeRouteArgs>> moe_route_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return moe_route_cuda_kernels();
  static constexpr Kernel<MoeRouteArgs> kTable[] = {
      {"moe_route.reference", Isa::kReference, supports_all<MoeRouteArgs>, moe_route_reference},
      {"moe_route.plain", Isa::kPlain, supports_all<MoeRouteArgs>, moe_route_plain},
      {"moe_route.x86_avx2", Isa::kAvx2, supports_all<MoeRouteArgs>, moe_route_avx2},
      {"moe_route.x86_avx512", Isa::kAvx512, supports_all<MoeRouteArgs>, moe_route_avx512},
  };
  return kTable;
}

std::span<const Kernel<MoeExpertsArgs>> moe_experts_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return moe_experts_cuda_kernels();
  static constexpr Kernel<MoeExpertsArgs> kTable[] = {
      {"moe_experts.reference", Isa::kReference, supports_all<MoeExpertsArgs>,
       moe_experts_reference},
      {"moe_experts.plain", Isa::kPlain, experts_support, moe_experts_plain},
      {"moe_experts.int8_plain", Isa::kPlain, int8_experts_support, moe_experts_plain},
      {"moe_experts.x86_avx2", Isa::kAvx2, experts_support, moe_experts_avx2},
      {"moe_experts.int8_avx2", Isa::kAvx2, int8_experts_support, moe_experts_avx2},
      {"moe_experts.x86_avxvnni", Isa::kAvxVnni, experts_support, moe_experts_avxvnni},
      {"moe_experts.int8_avxvnni", Isa::kAvxVnni, int8_experts_support, moe_experts_avxvnni},
      {"moe_experts.x86_avx512", Isa::kAvx512, experts_support, moe_experts_avx512},
      {"moe_experts.int8_avx512", Isa::kAvx512, int8_experts_support, moe_experts_avx512},
      {"moe_experts.int8_amx", Isa::kAmx, int8_experts_support, moe_experts_int8_amx},
  };
  return kTable;
}

}  // namespace fathom::kernels
