// The implementations of kernels/moe; table.cc lists them.
#pragma once

#include "kernels/moe/moe.h"

namespace fathom::kernels {

void moe_route_reference(const MoeRouteArgs& args);
void moe_route_plain(const MoeRouteArgs& args);
void moe_route_avx2(const MoeRouteArgs& args);
void moe_route_avx512(const MoeRouteArgs& args);
void moe_experts_reference(const MoeExpertsArgs& args);

}  // namespace fathom::kernels
