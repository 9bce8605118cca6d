// The peak loops with AVX-512: vpdpbusd for int8, 64 multiply-adds each, and fused multiply-adds.
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
constexpr int kChains = 12;

uint64_t read(const std::byte* data, size_t bytes) {
  const size_t stream = bytes / kStreams;
  __m512i sum = _mm512_setzero_si512();
  for (size_t at = 0; at < stream; at += kLine) {
    for (size_t s = 0; s < kStreams; ++s) {
      const std::byte* line = data + s * stream + at;
      _mm_prefetch(reinterpret_cast<const char*>(line + kPrefetchBytes), _MM_HINT_T0);
      sum = _mm512_xor_si512(sum, _mm512_load_si512(line));
    }
  }
  return static_cast<uint64_t>(_mm512_reduce_add_epi64(sum));
}

double int8(int64_t rounds, uint64_t& sink) {
  __m512i w = _mm512_set1_epi8(static_cast<char>(sink | 1));
  __m512i x = _mm512_set1_epi8(3);
  __m512i a0 = w, a1 = w, a2 = w, a3 = w, a4 = w, a5 = w, a6 = w, a7 = w, a8 = w, a9 = w, a10 = w,
          a11 = w;
  for (int64_t r = 0; r < rounds; ++r) {
    // Opaque to the compiler, which would see equal chains and keep one.
    asm volatile(
        "vpdpbusd %13, %12, %0\n vpdpbusd %13, %12, %1\n vpdpbusd %13, %12, %2\n vpdpbusd %13, "
        "%12, %3\n"
        "vpdpbusd %13, %12, %4\n vpdpbusd %13, %12, %5\n vpdpbusd %13, %12, %6\n vpdpbusd %13, "
        "%12, %7\n"
        "vpdpbusd %13, %12, %8\n vpdpbusd %13, %12, %9\n vpdpbusd %13, %12, %10\n vpdpbusd %13, "
        "%12, %11\n"
        : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5), "+v"(a6), "+v"(a7), "+v"(a8),
          "+v"(a9), "+v"(a10), "+v"(a11)
        : "v"(w), "v"(x));
  }
  uint64_t lanes[8] = {};
  const __m512i chains[] = {a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11};
  for (const __m512i& a : chains) {
    alignas(64) uint64_t part[8];
    _mm512_store_si512(part, a);
    for (int i = 0; i < 8; ++i) lanes[i] ^= part[i];
  }
  for (const uint64_t lane : lanes) sink += lane;
  return 2.0 * 64 * kChains * static_cast<double>(rounds);
}

double fp32(int64_t rounds, uint64_t& sink) {
  const __m512 m = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  __m512 a0 = b, a1 = b, a2 = b, a3 = b, a4 = b, a5 = b, a6 = b, a7 = b, a8 = b, a9 = b, a10 = b,
         a11 = b;
  for (int64_t r = 0; r < rounds; ++r) {
    asm volatile(
        "vfmadd213ps %13, %12, %0\n vfmadd213ps %13, %12, %1\n vfmadd213ps %13, %12, %2\n"
        "vfmadd213ps %13, %12, %3\n vfmadd213ps %13, %12, %4\n vfmadd213ps %13, %12, %5\n"
        "vfmadd213ps %13, %12, %6\n vfmadd213ps %13, %12, %7\n vfmadd213ps %13, %12, %8\n"
        "vfmadd213ps %13, %12, %9\n vfmadd213ps %13, %12, %10\n vfmadd213ps %13, %12, %11\n"
        : "+v"(a0), "+v"(a1), "+v"(a2), "+v"(a3), "+v"(a4), "+v"(a5), "+v"(a6), "+v"(a7), "+v"(a8),
          "+v"(a9), "+v"(a10), "+v"(a11)
        : "v"(m), "v"(b));
  }
  const __m512 sum = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11;
  sink += static_cast<uint64_t>(_mm512_reduce_add_ps(sum));
  return 2.0 * 16 * kChains * static_cast<double>(rounds);
}

}  // namespace

const PeakLoops& avx512_peak_loops() {
  static constexpr PeakLoops kLoops = {.read = read, .int8 = int8, .fp32 = fp32};
  return kLoops;
}

}  // namespace fathom::bench
