// The rows of kernels/compress_pool for AVX-512: fast.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/x86_avx512.inc"

#include "kernels/compress_pool/fast.inc"

namespace fathom::kernels {

void compress_pool_avx512(const CompressPoolArgs& args) { compress_pool_rows(args); }

}  // namespace fathom::kernels
