// The implementations of kernels/index_select; table.cc lists them.
#pragma once

#include "kernels/index_select/index_select.h"

namespace fathom::kernels {

void index_select_reference(const IndexSelectArgs& args);
void index_select_plain(const IndexSelectArgs& args);
void index_select_avx2(const IndexSelectArgs& args);
void index_select_avx512(const IndexSelectArgs& args);

// cuda_scan.cu; only in a build with CUDA.
bool index_select_cuda_mma_supports(const IndexSelectArgs& args);
void index_select_cuda_mma(const IndexSelectArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<IndexSelectArgs>> index_select_cuda_kernels();

}  // namespace fathom::kernels
