// The implementations of kernels/row_best; table.cc lists them.
#pragma once

#include "kernels/row_best/row_best.h"

namespace fathom::kernels {

void row_best_reference(const RowBestArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<RowBestArgs>> row_best_cuda_kernels();

}  // namespace fathom::kernels
