// Stored weights to fp32 vectors, and the tree over the lanes, with AVX-512
// (kernels/linear/lanes.h). For files compiled for that ISA only; everything is static inline.
#pragma once

#include "kernels/formats.h"

#if defined(__AVX512F__)  // so that the header also compiles alone, for the baseline

#include <immintrin.h>

#include <cstdint>
#include <utility>

namespace fathom::kernels {

template <class Fn, size_t... I>
static inline __attribute__((always_inline)) void each(Fn&& fn, std::index_sequence<I...>) {
  (fn(std::integral_constant<size_t, I>()), ...);
}
// fn(0), fn(1), ... as constants: g++ 12 keeps arrays that loops index in memory.
template <size_t N, class Fn>
static inline __attribute__((always_inline)) void each(Fn&& fn) {
  each(std::forward<Fn>(fn), std::make_index_sequence<N>());
}

static inline __m512 e2m1_table() {
  return _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f,
                        -2.0f, -3.0f, -4.0f, -6.0f);
}

static inline __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>(n < 16 ? (1u << n) - 1u : 0xffffu);
}

// |v| <= 448 to the nearest e4m3 value, ties to even (kernels/formats.h: float_to_e4m3).
static inline __m512 round_e4m3(__m512 v) {
  const __m512 small_unit = _mm512_set1_ps(0x1p14f);
  const __m512i sign = _mm512_set1_epi32(int(0x80000000u));
  const __m512i bits = _mm512_castps_si512(v);
  const __m512 a = _mm512_castsi512_ps(_mm512_andnot_si512(sign, bits));
  const __m512i lsb = _mm512_and_si512(_mm512_srli_epi32(bits, 20), _mm512_set1_epi32(1));
  const __m512i up =
      _mm512_add_epi32(_mm512_castps_si512(a), _mm512_add_epi32(lsb, _mm512_set1_epi32(0x7ffff)));
  const __m512 normal =
      _mm512_castsi512_ps(_mm512_and_si512(up, _mm512_set1_epi32(int(0xfff00000u))));
  const __m512 tiny = _mm512_sub_ps(_mm512_add_ps(a, small_unit), small_unit);
  const __mmask16 is_tiny = _mm512_cmp_ps_mask(a, _mm512_set1_ps(0x1p-6f), _CMP_LT_OQ);
  const __m512 rounded =
      _mm512_min_ps(_mm512_mask_mov_ps(normal, is_tiny, tiny), _mm512_set1_ps(448.0f));
  return _mm512_castsi512_ps(
      _mm512_or_si512(_mm512_castps_si512(rounded), _mm512_and_si512(bits, sign)));
}

// The scale of a group of inputs rounded to e4m3 (docs/spec/model.md 6.4).
static inline float e4m3_scale(__m512 v0, __m512 v1) {
  const float amax = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(v0), _mm512_abs_ps(v1)));
  return pow2ceil((amax > 1e-4f ? amax : 1e-4f) * (1.0f / 448.0f));
}

// Up to 16 ue8m0 scales as fp32.
static inline __m512 load_scales(const uint8_t* scale, int64_t n) {
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(first_lanes(n), scale));
  // Code 0 is 2^-127, a subnormal.
  const __m512i bits = _mm512_max_epu32(_mm512_slli_epi32(bytes, 23), _mm512_set1_epi32(1 << 22));
  return _mm512_castsi512_ps(bits);
}

// 32 e4m3 codes as fp16 x 2^-8: shifted into place they are fp16 of a smaller exponent, subnormals
// included.
static inline __m512i e4m3_as_half(const uint8_t* code) {
  const __m512i words = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i*)code));
  return _mm512_and_si512(_mm512_slli_epi16(words, 7), _mm512_set1_epi16(short(0xbfff)));
}

static inline void unpack_e4m3(const uint8_t* code, __m512& w0, __m512& w1) {
  const __m512i half = e4m3_as_half(code);
  w0 = _mm512_cvtph_ps(_mm512_castsi512_si256(half));
  w1 = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1));
}

// The same through memory, `half`: a conversion from there takes one operation, from a register
// two.  Left to itself the compiler takes one place for all.
static inline __attribute__((always_inline)) void unpack_e4m3_in_memory(const uint8_t* code,
                                                                        __m512i* half, __m512& w0,
                                                                        __m512& w1) {
  __asm__("vmovdqa64 %1, %0" : "=m"(*half) : "v"(e4m3_as_half(code)));
  const auto* halves = reinterpret_cast<const __m256i*>(half);
  __asm__("vcvtph2ps %1, %0" : "=v"(w0) : "m"(halves[0]));
  __asm__("vcvtph2ps %1, %0" : "=v"(w1) : "m"(halves[1]));
}

static inline __m512 widen_bf16(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// The sums over the lanes of four vectors, by the tree of lanes.h.
static inline __m128 fold_lanes(__m512 v0, __m512 v1, __m512 v2, __m512 v3) {
  const __m512 a =
      _mm512_add_ps(_mm512_shuffle_f32x4(v0, v1, 0x44), _mm512_shuffle_f32x4(v0, v1, 0xee));
  const __m512 b =
      _mm512_add_ps(_mm512_shuffle_f32x4(v2, v3, 0x44), _mm512_shuffle_f32x4(v2, v3, 0xee));
  const __m512 c =
      _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  const __m512 d = _mm512_add_ps(c, _mm512_permute_ps(c, 0x4e));
  const __m512 e = _mm512_add_ps(d, _mm512_permute_ps(d, 0xb1));
  const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  return _mm512_castps512_ps128(_mm512_permutexvar_ps(first, e));
}

}  // namespace fathom::kernels
#endif
