// The rows of kernels/index_select for AVX-512: fast.inc on the lanes of that instruction set.

// clang-format off: the lanes come first.
#include "kernels/lanes/x86_avx512.inc"

#include "kernels/index_select/dots_avx512.inc"
#include "kernels/index_select/fast.inc"
// clang-format on

namespace fathom::kernels {

void index_select_avx512(const IndexSelectArgs& args) { index_select_rows(args); }

}  // namespace fathom::kernels
