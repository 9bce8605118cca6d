// The implementations of kernels/linear; table.cc lists them.
#pragma once

#include "kernels/linear/linear.h"

namespace fathom::kernels {

void linear_reference(const LinearArgs& args);

// fp8, fp4 and quantized inputs want a multiple of 32 columns.
bool lane_linear_supports(const LinearArgs& args);
void linear_plain(const LinearArgs& args);
void linear_avx2(const LinearArgs& args);
void linear_avx512(const LinearArgs& args);

// cuda_mma.cu; only in a build with CUDA.
bool linear_cuda_mma_supports(const LinearArgs& args);
void linear_cuda_mma(const LinearArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<LinearArgs>> linear_cuda_kernels();

}  // namespace fathom::kernels
