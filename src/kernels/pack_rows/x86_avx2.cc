// The rows of kernels/pack_rows for AVX2: fast.inc on the lanes of that instruction set.

// clang-format off: the lanes come first.
#include "kernels/lanes/x86_avx2.inc"

#include "kernels/pack_rows/fast.inc"
// clang-format on

namespace fathom::kernels {

void pack_rows_avx2(const PackRowsArgs& args) { pack_rows_all(args); }

}  // namespace fathom::kernels
