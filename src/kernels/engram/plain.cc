// The rows of kernels/engram for portable C++: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/plain.inc"

#include "kernels/engram/fast.inc"

namespace fathom::kernels {

void engram_gather_plain(const EngramGatherArgs& args) { engram_gather_rows(args); }
void engram_gate_plain(const EngramGateArgs& args) { engram_gate_rows(args); }

}  // namespace fathom::kernels
