// The rows of kernels/index_select for AVX-512: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/x86_avx512.inc"

#include "kernels/index_select/dots_avx512.inc"
#include "kernels/index_select/fast.inc"

namespace fathom::kernels {

void index_select_avx512(const IndexSelectArgs& args) { index_select_rows(args); }

}  // namespace fathom::kernels
