// The rows of kernels/compress_pool for portable C++: fast.inc on the lanes of that instruction
// set.

// clang-format off: the lanes come first.
#include "kernels/lanes/plain.inc"

#include "kernels/compress_pool/fast.inc"
// clang-format on

namespace fathom::kernels {

void compress_pool_plain(const CompressPoolArgs& args) { compress_pool_rows(args); }

}  // namespace fathom::kernels
