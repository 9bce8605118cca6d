// The implementations of kernels/rms_norm; table.cc lists them.
#pragma once

#include "kernels/rms_norm/rms_norm.h"

namespace fathom::kernels {

void rms_norm_reference(const RmsNormArgs& args);
void rms_norm_plain(const RmsNormArgs& args);
void rms_norm_avx2(const RmsNormArgs& args);
void rms_norm_avx512(const RmsNormArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<RmsNormArgs>> rms_norm_cuda_kernels();

}  // namespace fathom::kernels
