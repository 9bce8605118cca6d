// The rows of kernels/moe for AVX-512: route.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/x86_avx512.inc"
#include "kernels/moe/route.inc"

namespace fathom::kernels {

void moe_route_avx512(const MoeRouteArgs& args) { moe_route_rows(args); }

}  // namespace fathom::kernels
