// The implementations of kernels/fetch_picked; table.cc lists them.
#pragma once

#include "kernels/fetch_picked/fetch_picked.h"

namespace fathom::kernels {

void fetch_picked_reference(const FetchPickedArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<FetchPickedArgs>> fetch_picked_cuda_kernels();

}  // namespace fathom::kernels
