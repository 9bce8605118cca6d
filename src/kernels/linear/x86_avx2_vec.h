// Stored weights to fp32 vectors, and the tree over the lanes, with AVX2 (kernels/linear/lanes.h):
// 16 lanes are a pair of ymm.  For files compiled for that ISA only; everything is static inline.
#pragma once

#include "kernels/formats.h"

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

static inline __m256 sign_bits() { return _mm256_set1_ps(-0.0f); }
static inline __m256 absolute(__m256 v) { return _mm256_andnot_ps(sign_bits(), v); }

// |v| <= 448 to the nearest e4m3 value, ties to even (kernels/formats.h: float_to_e4m3).
static inline __m256 round_e4m3(__m256 v) {
  const __m256 small_unit = _mm256_set1_ps(0x1p14f);
  const __m256 a = absolute(v);
  const __m256i lsb =
      _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(v), 20), _mm256_set1_epi32(1));
  const __m256i up =
      _mm256_add_epi32(_mm256_castps_si256(a), _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7ffff)));
  const __m256 normal =
      _mm256_castsi256_ps(_mm256_and_si256(up, _mm256_set1_epi32(int(0xfff00000u))));
  const __m256 tiny = _mm256_sub_ps(_mm256_add_ps(a, small_unit), small_unit);
  const __m256 is_tiny = _mm256_cmp_ps(a, _mm256_set1_ps(0x1p-6f), _CMP_LT_OQ);
  const __m256 rounded =
      _mm256_min_ps(_mm256_blendv_ps(normal, tiny, is_tiny), _mm256_set1_ps(448.0f));
  return _mm256_or_ps(rounded, _mm256_and_ps(v, sign_bits()));
}

// The scale of a group of inputs, 4 vectors, rounded to e4m3 (docs/spec/model.md 6.4).
static inline float e4m3_scale(const __m256* v) {
  const __m256 m = _mm256_max_ps(_mm256_max_ps(absolute(v[0]), absolute(v[1])),
                                 _mm256_max_ps(absolute(v[2]), absolute(v[3])));
  __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
  m4 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
  const float amax = _mm_cvtss_f32(_mm_max_ss(m4, _mm_movehdup_ps(m4)));
  return pow2ceil((amax > 1e-4f ? amax : 1e-4f) * (1.0f / 448.0f));
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
