// LaneKernels::dot with AVX2 (kernels/linear/lanes.h), for one token.
#pragma once

#include "kernels/linear/lanes.h"

namespace fathom::kernels {

void dot_avx2(const RowBlock& block, const float* const* x, int64_t tokens, float* y);

}  // namespace fathom::kernels
