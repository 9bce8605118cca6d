// The rows of kernels/moe for portable C++: route.inc on the lanes of that instruction set.

// clang-format off: the lanes come first.
#include "kernels/lanes/plain.inc"
#include "kernels/moe/route.inc"
// clang-format on

namespace fathom::kernels {

void moe_route_plain(const MoeRouteArgs& args) { moe_route_rows(args); }

}  // namespace fathom::kernels
