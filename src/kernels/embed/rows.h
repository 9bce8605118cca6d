// The implementations of kernels/embed; table.cc lists them.
#pragma once

#include "kernels/embed/embed.h"

namespace fathom::kernels {

void embed_reference(const EmbedArgs& args);
void embed_plain(const EmbedArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<EmbedArgs>> embed_cuda_kernels();

}  // namespace fathom::kernels
