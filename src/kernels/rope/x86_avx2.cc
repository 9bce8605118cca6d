// The rows of kernels/rope for AVX2: fast.inc on the lanes of that instruction set.

// clang-format off: the lanes come first.
#include "kernels/lanes/x86_avx2.inc"

#include "kernels/rope/fast.inc"
// clang-format on

namespace fathom::kernels {

void rope_avx2(const RopeArgs& args) { rope_rows(args); }

}  // namespace fathom::kernels
