// The rows of kernels/rms_norm for AVX-512: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/x86_avx512.inc"

#include "kernels/rms_norm/fast.inc"

namespace fathom::kernels {

void rms_norm_avx512(const RmsNormArgs& args) { rms_norm_rows(args); }

}  // namespace fathom::kernels
