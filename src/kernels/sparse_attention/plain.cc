// The rows of kernels/sparse_attention for portable C++: fast.inc on the lanes of that instruction
// set.

// clang-format off: the lanes come first.
#include "kernels/lanes/plain.inc"

#include "kernels/sparse_attention/fast.inc"
// clang-format on

namespace fathom::kernels {

void sparse_attention_plain(const SparseAttentionArgs& args) { sparse_attention_rows(args); }

}  // namespace fathom::kernels
