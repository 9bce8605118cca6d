// The AVX2 forms of the reference's sums; called only after a check of cpuid.
#pragma once

#include <cstdint>

namespace fathom::kernels {

double dot64_avx2(const float* a, const float* b, int64_t n);
void axpy64_avx2(float a, const float* x, double* y, int64_t n);

}  // namespace fathom::kernels
