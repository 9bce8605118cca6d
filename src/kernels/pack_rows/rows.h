// The implementations of kernels/pack_rows; table.cc lists them.
#pragma once

#include "kernels/pack_rows/pack_rows.h"

namespace fathom::kernels {

void pack_rows_reference(const PackRowsArgs& args);
void pack_rows_plain(const PackRowsArgs& args);
void pack_rows_avx2(const PackRowsArgs& args);
void pack_rows_avx512(const PackRowsArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<PackRowsArgs>> pack_rows_cuda_kernels();

}  // namespace fathom::kernels
