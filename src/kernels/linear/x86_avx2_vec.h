// Stored weights to fp32 vectors, and the tree over the lanes, with AVX2 (kernels/linear/lanes.h):
// 16 lanes are a pair of ymm.  For files compiled for that ISA only; everything is static inline.
#pragma once

#if defined(__AVX2__)  // so that the header also compiles alone, for the baseline

#include <immintrin.h>

#include <cstdint>

namespace fathom::kernels {

// Lanes 0-7 and 8-15.
struct LanePair {
  __m256 lo, hi;
};

static inline LanePair load_lanes(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

static inline void store_lanes(float* p, LanePair v) {
  _mm256_storeu_ps(p, v.lo);
  _mm256_storeu_ps(p + 8, v.hi);
}

static inline __m256 e2m1_magnitudes() {
  return _mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
}

// 8 bytes of fp4 pairs: their low codes and their high codes.  `magnitude` is the table of the 8
// magnitudes.
static inline void unpack_e2m1(const uint8_t* code, __m256 magnitude, __m256& even, __m256& odd) {
  const __m256i sign = _mm256_set1_epi32(int(0x80000000u));
  const __m256i byte = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)code));
  // The permute reads the low 3 bits of its indices only.
  const __m256 m0 = _mm256_permutevar8x32_ps(magnitude, byte);
  const __m256 m1 = _mm256_permutevar8x32_ps(magnitude, _mm256_srli_epi32(byte, 4));
  even = _mm256_or_ps(m0, _mm256_castsi256_ps(_mm256_and_si256(_mm256_slli_epi32(byte, 28), sign)));
  odd = _mm256_or_ps(m1, _mm256_castsi256_ps(_mm256_and_si256(_mm256_slli_epi32(byte, 24), sign)));
}

// 16 e4m3 codes as fp32 x 2^-8: shifted into place they are fp16 of a smaller exponent, subnormals
// included.
static inline LanePair unpack_e4m3(const uint8_t* code) {
  const __m256i words = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)code));
  const __m256i half =
      _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(short(0xbfff)));
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(half)),
          _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1))};
}

static inline __m256 widen_bf16(const uint8_t* bits) {
  const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)bits));
  return _mm256_castsi256_ps(_mm256_slli_epi32(words, 16));
}

// The sum over the lanes, by the tree of lanes.h.
static inline float fold_lanes(LanePair v) {
  const __m256 s8 = _mm256_add_ps(v.lo, v.hi);
  const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
  const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
  return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

}  // namespace fathom::kernels
#endif
