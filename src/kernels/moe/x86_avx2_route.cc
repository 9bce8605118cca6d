// The rows of kernels/moe for AVX2: route.inc on the lanes of that instruction set.

// clang-format off: the lanes come first.
#include "kernels/lanes/x86_avx2.inc"
#include "kernels/moe/route.inc"
// clang-format on

namespace fathom::kernels {

void moe_route_avx2(const MoeRouteArgs& args) { moe_route_rows(args); }

}  // namespace fathom::kernels
