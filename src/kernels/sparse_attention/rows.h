// The implementations of kernels/sparse_attention; table.cc lists them.
#pragma once

#include "kernels/sparse_attention/sparse_attention.h"

namespace fathom::kernels {

void sparse_attention_reference(const SparseAttentionArgs& args);
void sparse_attention_plain(const SparseAttentionArgs& args);
void sparse_attention_avx2(const SparseAttentionArgs& args);
void sparse_attention_avx512(const SparseAttentionArgs& args);

// cuda_wgmma.cu, for GPUs with wgmma; only in a build with CUDA.
bool sparse_attention_wgmma_supports(const SparseAttentionArgs& args);
void sparse_attention_wgmma(const SparseAttentionArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<SparseAttentionArgs>> sparse_attention_cuda_kernels();

}  // namespace fathom::kernels
