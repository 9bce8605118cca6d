// LaneKernels::dot with AVX-512 (kernels/linear/lanes.h).
#pragma once

#include "kernels/linear/lanes.h"

namespace fathom::kernels {

inline constexpr int kAvx512UnfoldedTokens = 2;
void dot_avx512(const RowBlock& block, const float* const* x, int64_t tokens, float* y);

}  // namespace fathom::kernels
