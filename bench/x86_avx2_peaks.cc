// The peak loops with AVX2: vpmaddubsw, vpmaddwd and vpaddd for int8 (32 multiply-adds in three
// operations), and fused multiply-adds.
//
// Twelve accumulators in named registers: two units of latency 4 to 5 need ten, and g++ 12 would
// leave an array in memory.
#include <immintrin.h>

#include "bench/peak_loops.h"

namespace fathom::bench {
namespace {

constexpr size_t kStreams = 16;
constexpr size_t kLine = 64;
constexpr size_t kPrefetchBytes = 512;
constexpr int kIntChains = 8;
constexpr int kChains = 12;

uint64_t read(const std::byte* data, size_t bytes) {
  const size_t stream = bytes / kStreams;
  __m256i sum = _mm256_setzero_si256();
  for (size_t at = 0; at < stream; at += kLine) {
    for (size_t s = 0; s < kStreams; ++s) {
      const auto* line = reinterpret_cast<const __m256i*>(data + s * stream + at);
      _mm_prefetch(reinterpret_cast<const char*>(line) + kPrefetchBytes, _MM_HINT_T0);
      sum = _mm256_xor_si256(
          sum, _mm256_xor_si256(_mm256_load_si256(line), _mm256_load_si256(line + 1)));
    }
  }
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(half)) +
         static_cast<uint64_t>(_mm_extract_epi64(half, 1));
}

// One dot product: the 8-bit pairs, the 16-bit pairs, the sum.
__m256i dot_add(__m256i acc, __m256i w, __m256i x, __m256i ones) {
  asm volatile(""
               : "+x"(w));  // opaque to the compiler, which would see equal products and keep one
  return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), ones));
}

double int8(int64_t rounds, uint64_t& sink) {
  const __m256i w = _mm256_set1_epi8(static_cast<char>(sink | 1));
  const __m256i x = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
  __m256i a0 = w, a1 = w, a2 = w, a3 = w, a4 = w, a5 = w, a6 = w, a7 = w;
  for (int64_t r = 0; r < rounds; ++r) {
    a0 = dot_add(a0, w, x, ones), a1 = dot_add(a1, w, x, ones);
    a2 = dot_add(a2, w, x, ones), a3 = dot_add(a3, w, x, ones);
    a4 = dot_add(a4, w, x, ones), a5 = dot_add(a5, w, x, ones);
    a6 = dot_add(a6, w, x, ones), a7 = dot_add(a7, w, x, ones);
  }
  const __m256i sum = (a0 ^ a1) ^ (a2 ^ a3) ^ (a4 ^ a5) ^ (a6 ^ a7);
  sink += static_cast<uint64_t>(_mm256_extract_epi64(sum, 0));
  return 2.0 * 32 * kIntChains * static_cast<double>(rounds);
}

double fp32(int64_t rounds, uint64_t& sink) {
  const __m256 m = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  __m256 a0 = b, a1 = b, a2 = b, a3 = b, a4 = b, a5 = b, a6 = b, a7 = b, a8 = b, a9 = b, a10 = b,
         a11 = b;
  for (int64_t r = 0; r < rounds; ++r) {
    asm volatile(
        "vfmadd213ps %13, %12, %0\n vfmadd213ps %13, %12, %1\n vfmadd213ps %13, %12, %2\n"
        "vfmadd213ps %13, %12, %3\n vfmadd213ps %13, %12, %4\n vfmadd213ps %13, %12, %5\n"
        "vfmadd213ps %13, %12, %6\n vfmadd213ps %13, %12, %7\n vfmadd213ps %13, %12, %8\n"
        "vfmadd213ps %13, %12, %9\n vfmadd213ps %13, %12, %10\n vfmadd213ps %13, %12, %11\n"
        : "+x"(a0), "+x"(a1), "+x"(a2), "+x"(a3), "+x"(a4), "+x"(a5), "+x"(a6), "+x"(a7), "+x"(a8),
          "+x"(a9), "+x"(a10), "+x"(a11)
        : "x"(m), "x"(b));
  }
  const __m256 sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
  sink += static_cast<uint64_t>(_mm256_cvtss_f32(sum));
  return 2.0 * 8 * kChains * static_cast<double>(rounds);
}

}  // namespace

const PeakLoops& avx2_peak_loops() {
  static constexpr PeakLoops kLoops = {.read = read, .int8 = int8, .fp32 = fp32};
  return kLoops;
}

}  // namespace fathom::bench
