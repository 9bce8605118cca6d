#include "kernels/compress_pool/rows.h"

namespace fathom::kernels {

std::span<const Kernel<CompressPoolArgs>> compress_pool_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return compress_pool_cuda_kernels();
  static constexpr Kernel<CompressPoolArgs> kTable[] = {
      {"compress_pool.reference", Isa::kReference, supports_all<CompressPoolArgs>,
       compress_pool_reference},
      {"compress_pool.plain", Isa::kPlain, supports_all<CompressPoolArgs>, compress_pool_plain},
      {"compress_pool.x86_avx2", Isa::kAvx2, supports_all<CompressPoolArgs>, compress_pool_avx2},
      {"compress_pool.x86_avx512", Isa::kAvx512, supports_all<CompressPoolArgs>,
       compress_pool_avx512},
  };
  return kTable;
}

}  // namespace fathom::kernels
