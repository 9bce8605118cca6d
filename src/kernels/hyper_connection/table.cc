#include "kernels/hyper_connection/rows.h"

namespace fathom::kernels {

std::span<const Kernel<HcMixArgs>> hc_mix_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return hc_mix_cuda_kernels();
  static constexpr Kernel<HcMixArgs> kTable[] = {
      {"hc_mix.reference", Isa::kReference, supports_all<HcMixArgs>, hc_mix_reference},
      {"hc_mix.plain", Isa::kPlain, supports_all<HcMixArgs>, hc_mix_plain},
      {"hc_mix.x86_avx2", Isa::kAvx2, supports_all<HcMixArgs>, hc_mix_avx2},
      {"hc_mix.x86_avx512", Isa::kAvx512, supports_all<HcMixArgs>, hc_mix_avx512},
  };
  return kTable;
}

std::span<const Kernel<HcInArgs>> hc_in_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return hc_in_cuda_kernels();
  static constexpr Kernel<HcInArgs> kTable[] = {
      {"hc_in.reference", Isa::kReference, supports_all<HcInArgs>, hc_in_reference},
      {"hc_in.plain", Isa::kPlain, supports_all<HcInArgs>, hc_in_plain},
      {"hc_in.x86_avx2", Isa::kAvx2, supports_all<HcInArgs>, hc_in_avx2},
      {"hc_in.x86_avx512", Isa::kAvx512, supports_all<HcInArgs>, hc_in_avx512},
  };
  return kTable;
}

std::span<const Kernel<HcOutArgs>> hc_out_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return hc_out_cuda_kernels();
  static constexpr Kernel<HcOutArgs> kTable[] = {
      {"hc_out.reference", Isa::kReference, supports_all<HcOutArgs>, hc_out_reference},
      {"hc_out.plain", Isa::kPlain, supports_all<HcOutArgs>, hc_out_plain},
      {"hc_out.x86_avx2", Isa::kAvx2, supports_all<HcOutArgs>, hc_out_avx2},
      {"hc_out.x86_avx512", Isa::kAvx512, supports_all<HcOutArgs>, hc_out_avx512},
  };
  return kTable;
}

}  // namespace fathom::kernels
