// The parts of avx2_int8() that lie in other files (kernels/linear/int8.h).
#pragma once

#include <cstdint>

#include "kernels/linear/int8.h"

namespace fathom::kernels {

void dot_int8_avx2(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y,
                   int64_t y_stride);

}  // namespace fathom::kernels
