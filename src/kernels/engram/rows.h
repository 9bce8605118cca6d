// The implementations of kernels/engram; table.cc lists them.
#pragma once

#include "kernels/engram/engram.h"

namespace fathom::kernels {

void engram_gather_reference(const EngramGatherArgs& args);
void engram_gather_plain(const EngramGatherArgs& args);
void engram_gather_avx2(const EngramGatherArgs& args);
void engram_gather_avx512(const EngramGatherArgs& args);
void engram_gate_reference(const EngramGateArgs& args);
void engram_gate_plain(const EngramGateArgs& args);
void engram_gate_avx2(const EngramGateArgs& args);
void engram_gate_avx512(const EngramGateArgs& args);

void engram_hash_reference(const EngramHashArgs& args);

// cuda*.cu; empty in a build without CUDA.
std::span<const Kernel<EngramGatherArgs>> engram_gather_cuda_kernels();
std::span<const Kernel<EngramGateArgs>> engram_gate_cuda_kernels();
std::span<const Kernel<EngramHashArgs>> engram_hash_cuda_kernels();

}  // namespace fathom::kernels
