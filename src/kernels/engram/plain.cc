// The rows of kernels/engram for portable C++: fast.inc on the lanes of that instruction set.

// clang-format off: the lanes come first.
#include "kernels/lanes/plain.inc"

#include "kernels/engram/fast.inc"
// clang-format on

namespace fathom::kernels {

void engram_gather_plain(const EngramGatherArgs& args) { engram_gather_rows(args); }
void engram_gate_plain(const EngramGateArgs& args) { engram_gate_rows(args); }

}  // namespace fathom::kernels
