// The rows of kernels/pack_rows for AVX-512: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/x86_avx512.inc"

#include "kernels/pack_rows/fast.inc"

namespace fathom::kernels {

void pack_rows_avx512(const PackRowsArgs& args) { pack_rows_all(args); }

}  // namespace fathom::kernels
