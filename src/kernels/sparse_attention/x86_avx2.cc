// The rows of kernels/sparse_attention for AVX2: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/x86_avx2.inc"

#include "kernels/sparse_attention/fast.inc"

namespace fathom::kernels {

void sparse_attention_avx2(const SparseAttentionArgs& args) { sparse_attention_rows(args); }

}  // namespace fathom::kernels
