#include "kernels/embed/rows.h"

namespace fathom::kernels {

std::span<const Kernel<EmbedArgs>> embed_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return embed_cuda_kernels();
  static constexpr Kernel<EmbedArgs> kTable[] = {
      {"embed.reference", Isa::kReference, supports_all<EmbedArgs>, embed_reference},
      {"embed.plain", Isa::kPlain, supports_all<EmbedArgs>, embed_plain},
  };
  return kTable;
}

}  // namespace fathom::kernels
