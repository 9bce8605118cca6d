// The rows of kernels/index_select for AVX2: fast.inc on the lanes of that instruction set.

// clang-format off: the lanes come first.
#include "kernels/lanes/x86_avx2.inc"

#include "kernels/index_select/dots_avx2.inc"
#include "kernels/index_select/fast.inc"
// clang-format on

namespace fathom::kernels {

void index_select_avx2(const IndexSelectArgs& args) { index_select_rows(args); }

}  // namespace fathom::kernels
