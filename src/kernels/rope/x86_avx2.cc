// The rows of kernels/rope for AVX2: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/x86_avx2.inc"

#include "kernels/rope/fast.inc"

namespace fathom::kernels {

void rope_avx2(const RopeArgs& args) { rope_rows(args); }

}  // namespace fathom::kernels
