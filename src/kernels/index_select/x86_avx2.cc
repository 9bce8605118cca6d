// The rows of kernels/index_select for AVX2: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/x86_avx2.inc"

#include "kernels/index_select/dots_avx2.inc"
#include "kernels/index_select/fast.inc"

namespace fathom::kernels {

void index_select_avx2(const IndexSelectArgs& args) { index_select_rows(args); }

}  // namespace fathom::kernels
