// The implementations of kernels/row_logprobs; table.cc lists them.
#pragma once

#include "kernels/row_logprobs/row_logprobs.h"

namespace fathom::kernels {

void row_logprobs_reference(const RowLogprobsArgs& args);

// cuda.cu; empty in a build without CUDA.
std::span<const Kernel<RowLogprobsArgs>> row_logprobs_cuda_kernels();

}  // namespace fathom::kernels
