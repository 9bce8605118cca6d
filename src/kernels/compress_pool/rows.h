// The implementations of kernels/compress_pool; table.cc lists them.
#pragma once

#include "kernels/compress_pool/compress_pool.h"

namespace fathom::kernels {

void compress_pool_reference(const CompressPoolArgs& args);
void compress_pool_plain(const CompressPoolArgs& args);
void compress_pool_avx2(const CompressPoolArgs& args);
void compress_pool_avx512(const CompressPoolArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<CompressPoolArgs>> compress_pool_cuda_kernels();

}  // namespace fathom::kernels
