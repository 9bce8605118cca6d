// The peak loops with AVX-VNNI: vpdpbusd for int8 (32 multiply-adds an operation), the rest of
// AVX2.
#include <immintrin.h>

#include "bench/peak_loops.h"

namespace fathom::bench {
namespace {

// Twelve accumulators in named registers: two units of latency 5 need ten.
double int8(int64_t rounds, uint64_t& sink) {
  const __m256i w = _mm256_set1_epi8(static_cast<char>(sink | 1)), x = _mm256_set1_epi8(3);
  __m256i a0 = w, a1 = w, a2 = w, a3 = w, a4 = w, a5 = w, a6 = w, a7 = w, a8 = w, a9 = w, a10 = w,
          a11 = w;
  for (int64_t r = 0; r < rounds; ++r) {
    asm volatile(
        "%{vex%} vpdpbusd %13, %12, %0\n %{vex%} vpdpbusd %13, %12, %1\n"
        "%{vex%} vpdpbusd %13, %12, %2\n %{vex%} vpdpbusd %13, %12, %3\n"
        "%{vex%} vpdpbusd %13, %12, %4\n %{vex%} vpdpbusd %13, %12, %5\n"
        "%{vex%} vpdpbusd %13, %12, %6\n %{vex%} vpdpbusd %13, %12, %7\n"
        "%{vex%} vpdpbusd %13, %12, %8\n %{vex%} vpdpbusd %13, %12, %9\n"
        "%{vex%} vpdpbusd %13, %12, %10\n %{vex%} vpdpbusd %13, %12, %11\n"
        : "+x"(a0), "+x"(a1), "+x"(a2), "+x"(a3), "+x"(a4), "+x"(a5), "+x"(a6), "+x"(a7), "+x"(a8),
          "+x"(a9), "+x"(a10), "+x"(a11)
        : "x"(w), "x"(x));
  }
  const __m256i sum = (a0 ^ a1) ^ (a2 ^ a3) ^ (a4 ^ a5) ^ (a6 ^ a7) ^ (a8 ^ a9) ^ (a10 ^ a11);
  sink += static_cast<uint64_t>(_mm256_extract_epi64(sum, 0));
  return 2.0 * 32 * 12 * static_cast<double>(rounds);
}

}  // namespace

const PeakLoops& avxvnni_peak_loops() {
  static const PeakLoops kLoops = {
      .read = avx2_peak_loops().read, .int8 = int8, .fp32 = avx2_peak_loops().fp32};
  return kLoops;
}

}  // namespace fathom::bench
