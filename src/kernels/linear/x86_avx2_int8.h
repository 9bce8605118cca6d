// What the files of avx2_int8() and avxvnni_int8() share (kernels/linear/int8.h).
#pragma once

#include <cstdint>

#include "kernels/linear/int8.h"

namespace fathom::kernels {

// A tile, dwords of kBlockRows rows side by side, [groups][8 or 16][kBlockRows]: of fp4 4 bytes
// (the value in halves + 12) in a dword, and then fp32 scales [groups][kBlockRows] at
// kYmmScaleOffset; of fp8 2 int16 units in a dword.
inline constexpr int kYmmVectors = kBlockRows / 8;
inline constexpr int64_t kYmmStepBytes = kBlockRows * 4;
inline constexpr int64_t kYmmFp4GroupBytes = 8 * kYmmStepBytes;
inline constexpr int64_t kYmmFp8GroupBytes = 16 * kYmmStepBytes;
inline constexpr int64_t kYmmScaleOffset = kBlockRows * kInt8TileCols;

// Up to kYmmDotTokens tokens at once, more in turns: of fp4 that takes less than a tile.
inline constexpr int64_t kYmmDotTokens = 3;
void dot_int8_avx2(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y,
                   int64_t y_stride);

// e4m3 by halves of a code: eeemmm of (s eee)(e mmm), of which the upper three bits of the exponent
// are E.  From E = 2 on a value in units of 2^-6 is the lower half's (8 + m) 2^(e mod 2) times
// 4^(E - 2); the 32 codes below have tables.
struct alignas(16) E4m3Halves {
  uint8_t mantissa[16], small_even[16], small_odd[16], factor_low[16], factor_high[16];
};
constexpr E4m3Halves make_e4m3_halves() {
  E4m3Halves t{};
  for (int i = 0; i < 16; ++i) {
    t.mantissa[i] = static_cast<uint8_t>((8 + i % 8) << (i / 8));
    t.small_even[i] = static_cast<uint8_t>(e4m3_units(static_cast<uint8_t>(i)));
    t.small_odd[i] = static_cast<uint8_t>(e4m3_units(static_cast<uint8_t>(16 + i)));
    const int magnitude = i % 8 < 2 ? 1 : 1 << (2 * (i % 8) - 4);
    const int factor = i < 8 ? magnitude : -magnitude;
    t.factor_low[i] = static_cast<uint8_t>(factor & 255);
    t.factor_high[i] = static_cast<uint8_t>(factor >> 8 & 255);
  }
  return t;
}
inline constexpr E4m3Halves kE4m3Halves = make_e4m3_halves();

}  // namespace fathom::kernels

#if defined(__AVX2__)  // so that the header also compiles alone, for the baseline

#include <immintrin.h>

namespace fathom::kernels {

struct E4m3Units {
  static __m256i table(const uint8_t* bytes) {
    return _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i*)bytes));
  }
  const __m256i mantissa = table(kE4m3Halves.mantissa);
  const __m256i small_even = table(kE4m3Halves.small_even);
  const __m256i small_odd = table(kE4m3Halves.small_odd);
  const __m256i factor_low = table(kE4m3Halves.factor_low);
  const __m256i factor_high = table(kE4m3Halves.factor_high);

  // 32 codes to units of 2^-6: those in the low halves of the 128-bit lanes, those in the high
  // ones.
  inline __attribute__((always_inline)) void operator()(__m256i w, __m256i* low,
                                                        __m256i* high) const {
    const __m256i c = _mm256_and_si256(w, _mm256_set1_epi8(0x7f));
    // An index from 128 on finds 0: each table is for some of the codes.
    const __m256i from_32 = _mm256_sub_epi8(c, _mm256_set1_epi8(32));
    const __m256i to_15 = _mm256_adds_epu8(c, _mm256_set1_epi8(0x70));
    const __m256i to_31 =
        _mm256_adds_epu8(_mm256_xor_si256(c, _mm256_set1_epi8(16)), _mm256_set1_epi8(0x70));
    const __m256i m = _mm256_or_si256(_mm256_shuffle_epi8(mantissa, from_32),
                                      _mm256_or_si256(_mm256_shuffle_epi8(small_even, to_15),
                                                      _mm256_shuffle_epi8(small_odd, to_31)));
    const __m256i e = _mm256_and_si256(_mm256_srli_epi16(w, 4), _mm256_set1_epi8(15));
    const __m256i f0 = _mm256_shuffle_epi8(factor_low, e);
    const __m256i f1 = _mm256_shuffle_epi8(factor_high, e);
    const __m256i zero = _mm256_setzero_si256();
    *low = _mm256_mullo_epi16(_mm256_unpacklo_epi8(m, zero), _mm256_unpacklo_epi8(f0, f1));
    *high = _mm256_mullo_epi16(_mm256_unpackhi_epi8(m, zero), _mm256_unpackhi_epi8(f0, f1));
  }
};

}  // namespace fathom::kernels
#endif
