// The implementations of kernels/row_draw; table.cc lists them.
#pragma once

#include "kernels/row_draw/row_draw.h"

namespace fathom::kernels {

void row_draw_reference(const RowDrawArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<RowDrawArgs>> row_draw_cuda_kernels();

}  // namespace fathom::kernels
