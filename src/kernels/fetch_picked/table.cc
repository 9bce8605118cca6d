#include "kernels/fetch_picked/rows.h"

namespace fathom::kernels {

std::span<const Kernel<FetchPickedArgs>> fetch_picked_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return fetch_picked_cuda_kernels();
  static constexpr Kernel<FetchPickedArgs> kTable[] = {
      {"fetch_picked.reference", Isa::kReference, supports_all<FetchPickedArgs>,
       fetch_picked_reference},
  };
  return kTable;
}

}  // namespace fathom::kernels
