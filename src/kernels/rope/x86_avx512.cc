// The rows of kernels/rope for AVX-512: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/x86_avx512.inc"

#include "kernels/rope/fast.inc"

namespace fathom::kernels {

void rope_avx512(const RopeArgs& args) { rope_rows(args); }

}  // namespace fathom::kernels
