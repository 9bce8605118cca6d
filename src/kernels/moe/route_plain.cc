// The rows of kernels/moe for portable C++: route.inc on the lanes of that instruction set.

// The lanes come first: the rest is written in their terms.
#include "kernels/lanes/plain.inc"
#include "kernels/moe/route.inc"

namespace fathom::kernels {

void moe_route_plain(const MoeRouteArgs& args) { moe_route_rows(args); }

}  // namespace fathom::kernels
