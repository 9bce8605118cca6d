// The rows of kernels/moe for AVX-512: route.inc on the lanes of that instruction set.

// clang-format off: the lanes come first.
#include "kernels/lanes/x86_avx512.inc"
#include "kernels/moe/route.inc"
// clang-format on

namespace fathom::kernels {

void moe_route_avx512(const MoeRouteArgs& args) { moe_route_rows(args); }

}  // namespace fathom::kernels
