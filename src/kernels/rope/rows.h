// The implementations of kernels/rope; table.cc lists them.
#pragma once

#include "kernels/rope/rope.h"

namespace fathom::kernels {

void rope_table_reference(const RopeTableArgs& args);
void rope_table_plain(const RopeTableArgs& args);
void rope_reference(const RopeArgs& args);
void rope_plain(const RopeArgs& args);
void rope_avx2(const RopeArgs& args);
void rope_avx512(const RopeArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<RopeTableArgs>> rope_table_cuda_kernels();
std::span<const Kernel<RopeArgs>> rope_cuda_kernels();

}  // namespace fathom::kernels
