// The implementations of kernels/copy_rows; table.cc lists them.
#pragma once

#include "kernels/copy_rows/copy_rows.h"

namespace fathom::kernels {

void copy_rows_reference(const CopyRowsArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<CopyRowsArgs>> copy_rows_cuda_kernels();

}  // namespace fathom::kernels
