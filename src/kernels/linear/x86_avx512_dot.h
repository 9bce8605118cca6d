// LaneKernels::dot with AVX-512 (kernels/linear/lanes.h).
#pragma once

#include "kernels/linear/lanes.h"

namespace fathom::kernels {

inline constexpr int kAvx512UnfoldedTokens = 2;
inline constexpr int kAvx512DotTokens = 4;
inline constexpr int kAvx512DotBf16Tokens = 6;  // accumulators of 4 rows in 24 registers
void dot_avx512(const RowBlock& block, const float* const* x, int64_t tokens, float* y);

}  // namespace fathom::kernels
