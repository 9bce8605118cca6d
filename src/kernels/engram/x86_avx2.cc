// The rows of kernels/engram for AVX2: fast.inc on the lanes of that instruction set.

// clang-format off: the lanes come first.
#include "kernels/lanes/x86_avx2.inc"

#include "kernels/engram/fast.inc"
// clang-format on

namespace fathom::kernels {

void engram_gather_avx2(const EngramGatherArgs& args) { engram_gather_rows(args); }
void engram_gate_avx2(const EngramGateArgs& args) { engram_gate_rows(args); }

}  // namespace fathom::kernels
