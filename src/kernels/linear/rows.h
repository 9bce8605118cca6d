// The implementations of kernels/linear; table.cc lists them.
#pragma once

#include "kernels/linear/linear.h"

namespace fathom::kernels {

void linear_reference(const LinearArgs& args);

// All of numerics `reference`, and what is bf16 in `int8`.  fp8, fp4 and quantized inputs want a
// multiple of 32 columns.
bool lane_linear_supports(const LinearArgs& args);
void linear_plain(const LinearArgs& args);
void linear_avx2(const LinearArgs& args);
void linear_avx512(const LinearArgs& args);

// fp8 and fp4 targets in numerics `int8`, of a multiple of 32 columns.
bool int8_linear_supports(const LinearArgs& args);
void linear_int8_plain(const LinearArgs& args);
void linear_int8_avx2(const LinearArgs& args);
void linear_int8_avxvnni(const LinearArgs& args);
void linear_int8_avx512(const LinearArgs& args);
void linear_int8_amx(const LinearArgs& args);
void linear_int8_amx_emulated(const LinearArgs& args);  // in no table: for tests without AMX

// cuda_mma.cu; only in a build with CUDA.
bool linear_cuda_mma_supports(const LinearArgs& args);
void linear_cuda_mma(const LinearArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<LinearArgs>> linear_cuda_kernels();

}  // namespace fathom::kernels
