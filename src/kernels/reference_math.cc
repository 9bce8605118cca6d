#include "kernels/reference_math.h"

#include "device/cpu_features.h"
#include "kernels/reference_math_rows.h"

namespace fathom::kernels {
namespace {

double dot64_plain(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

void axpy64_plain(float a, const float* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += static_cast<double>(a) * static_cast<double>(x[i]);
}

bool has_avx2() {
  static const bool value = missing_feature(Isa::kAvx2).empty();
  return value;
}

}  // namespace

double dot64(const float* a, const float* b, int64_t n) {
  return has_avx2() ? dot64_avx2(a, b, n) : dot64_plain(a, b, n);
}

void axpy64(float a, const float* x, double* y, int64_t n) {
  has_avx2() ? axpy64_avx2(a, x, y, n) : axpy64_plain(a, x, y, n);
}

}  // namespace fathom::kernels
