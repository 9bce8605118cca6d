// The rows of kernels/engram for AVX-512: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/x86_avx512.inc"

#include "kernels/engram/fast.inc"

namespace fathom::kernels {

void engram_gather_avx512(const EngramGatherArgs& args) { engram_gather_rows(args); }
void engram_gate_avx512(const EngramGateArgs& args) { engram_gate_rows(args); }

}  // namespace fathom::kernels
