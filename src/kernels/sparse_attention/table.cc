#include "kernels/sparse_attention/rows.h"

namespace fathom::kernels {

std::span<const Kernel<SparseAttentionArgs>> sparse_attention_kernels(DeviceKind kind) {
  if (kind == DeviceKind::kCuda) return sparse_attention_cuda_kernels();
  static constexpr Kernel<SparseAttentionArgs> kTable[] = {
      {"sparse_attention.reference", Isa::kReference, supports_all<SparseAttentionArgs>,
       sparse_attention_reference},
      {"sparse_attention.plain", Isa::kPlain, supports_all<SparseAttentionArgs>,
       sparse_attention_plain},
      {"sparse_attention.x86_avx2", Isa::kAvx2, supports_all<SparseAttentionArgs>,
       sparse_attention_avx2},
      {"sparse_attention.x86_avx512", Isa::kAvx512, supports_all<SparseAttentionArgs>,
       sparse_attention_avx512},
  };
  return kTable;
}

}  // namespace fathom::kernels
