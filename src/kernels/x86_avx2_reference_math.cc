// fp64 sums for the reference operations: 16 partial sums hide the latency of the fma.

#include <immintrin.h>

#include "kernels/reference_math_rows.h"

namespace fathom::kernels {

double dot64_avx2(const float* a, const float* b, int64_t n) {
  __m256d sum[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                    _mm256_setzero_pd()};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int j = 0; j < 4; ++j) {
      sum[j] = _mm256_fmadd_pd(_mm256_cvtps_pd(_mm_loadu_ps(a + i + 4 * j)),
                               _mm256_cvtps_pd(_mm_loadu_ps(b + i + 4 * j)), sum[j]);
    }
  }
  alignas(32) double lane[4];
  _mm256_store_pd(lane,
                  _mm256_add_pd(_mm256_add_pd(sum[0], sum[1]), _mm256_add_pd(sum[2], sum[3])));
  double total = (lane[0] + lane[1]) + (lane[2] + lane[3]);
  for (; i < n; ++i) total += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return total;
}

void axpy64_avx2(float a, const float* x, double* y, int64_t n) {
  const __m256d va = _mm256_set1_pd(static_cast<double>(a));
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256d vx = _mm256_cvtps_pd(_mm_loadu_ps(x + i));
    _mm256_storeu_pd(y + i, _mm256_fmadd_pd(va, vx, _mm256_loadu_pd(y + i)));
  }
  for (; i < n; ++i) y[i] += static_cast<double>(a) * static_cast<double>(x[i]);
}

}  // namespace fathom::kernels
