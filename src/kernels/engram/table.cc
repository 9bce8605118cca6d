#include "kernels/engram/rows.h"

namespace fathom::kernels {

std::span<const Kernel<EngramGatherArgs>> engram_gather_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return engram_gather_cuda_kernels();
  static constexpr Kernel<EngramGatherArgs> kTable[] = {
      {"engram_gather.reference", Isa::kReference, supports_all<EngramGatherArgs>,
       engram_gather_reference},
      {"engram_gather.plain", Isa::kPlain, supports_all<EngramGatherArgs>, engram_gather_plain},
      {"engram_gather.x86_avx2", Isa::kAvx2, supports_all<EngramGatherArgs>, engram_gather_avx2},
      {"engram_gather.x86_avx512", Isa::kAvx512, supports_all<EngramGatherArgs>,
       engram_gather_avx512},
  };
  return kTable;
}

std::span<const Kernel<EngramGateArgs>> engram_gate_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return engram_gate_cuda_kernels();
  static constexpr Kernel<EngramGateArgs> kTable[] = {
      {"engram_gate.reference", Isa::kReference, supports_all<EngramGateArgs>,
       engram_gate_reference},
      {"engram_gate.plain", Isa::kPlain, supports_all<EngramGateArgs>, engram_gate_plain},
      {"engram_gate.x86_avx2", Isa::kAvx2, supports_all<EngramGateArgs>, engram_gate_avx2},
      {"engram_gate.x86_avx512", Isa::kAvx512, supports_all<EngramGateArgs>, engram_gate_avx512},
  };
  return kTable;
}

std::span<const Kernel<EngramHashArgs>> engram_hash_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return engram_hash_cuda_kernels();
  static constexpr Kernel<EngramHashArgs> kTable[] = {
      {"engram_hash.reference", Isa::kReference, supports_all<EngramHashArgs>,
       engram_hash_reference},
  };
  return kTable;
}

}  // namespace fathom::kernels
