// The implementations of kernels/moe; table.cc lists them.
#pragma once

#include "kernels/moe/moe.h"

namespace fathom::kernels {

void moe_route_reference(const MoeRouteArgs& args);
void moe_route_plain(const MoeRouteArgs& args);
void moe_route_avx2(const MoeRouteArgs& args);
void moe_route_avx512(const MoeRouteArgs& args);
void moe_experts_reference(const MoeExpertsArgs& args);

// Widths want a multiple of 32 columns.  Numerics `reference`, and `int8` of experts in fp8 or fp4.
bool experts_support(const MoeExpertsArgs& args);
bool int8_experts_support(const MoeExpertsArgs& args);
void moe_experts_plain(const MoeExpertsArgs& args);
void moe_experts_avx2(const MoeExpertsArgs& args);
void moe_experts_avxvnni(const MoeExpertsArgs& args);
void moe_experts_avx512(const MoeExpertsArgs& args);
void moe_experts_int8_amx(const MoeExpertsArgs& args);

// cuda_experts_mma.cu; only in a build with CUDA.
bool moe_experts_cuda_mma_supports(const MoeExpertsArgs& args);
void moe_experts_cuda_mma(const MoeExpertsArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<MoeRouteArgs>> moe_route_cuda_kernels();
std::span<const Kernel<MoeExpertsArgs>> moe_experts_cuda_kernels();

}  // namespace fathom::kernels
