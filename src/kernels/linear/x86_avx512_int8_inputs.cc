// Rounding of x for the integer rows with AVX-512 (kernels/linear/int8.h).
#include <immintrin.h>

#include <algorithm>

#include "kernels/linear/x86_avx512_int8.h"
#include "kernels/linear/x86_avx512_vec.h"

namespace fathom::kernels {
namespace {

// The low bytes of 32 dwords; `fp4`: in its places.
void store_codes(__m512i c0, __m512i c1, bool fp4, int8_t* code) {
  __m128i b0 = _mm512_cvtepi32_epi8(c0), b1 = _mm512_cvtepi32_epi8(c1);
  if (fp4) {
    const __m128i even = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m128i p0 = _mm_shuffle_epi8(b0, even), p1 = _mm_shuffle_epi8(b1, even);
    b0 = _mm_unpacklo_epi64(p0, p1);
    b1 = _mm_unpackhi_epi64(p0, p1);
  }
  _mm_storeu_si128((__m128i*)code, b0);
  _mm_storeu_si128((__m128i*)(code + 16), b1);
}

void quantize_e4m3(__m512 v0, __m512 v1, const Int8Rows& out, int64_t group) {
  const float s = e4m3_scale(v0, v1);
  const __m512 inverse = _mm512_set1_ps(1.0f / s);
  const __m512 e0 = round_e4m3(_mm512_mul_ps(v0, inverse));
  const __m512 e1 = round_e4m3(_mm512_mul_ps(v1, inverse));
  const auto in_units = [](__m512 e, float unit) {
    return _mm512_cvtps_epi32(_mm512_mul_ps(e, _mm512_set1_ps(unit)));
  };
  const __m512i c0 = in_units(e0, 0x1p6f), c1 = in_units(e1, 0x1p6f);
  const __m512i f0 = in_units(e0, 0x1p9f), f1 = in_units(e1, 0x1p9f);
  const __m512i r0 = _mm512_sub_epi32(f0, _mm512_slli_epi32(c0, 3));
  const __m512i r1 = _mm512_sub_epi32(f1, _mm512_slli_epi32(c1, 3));
  const __m512i half = _mm512_set1_epi32(128), either = _mm512_or_si512(r0, r1);
  const int64_t at = group * kGroupCols;
  store_codes(_mm512_srai_epi32(_mm512_add_epi32(c0, half), 8),
              _mm512_srai_epi32(_mm512_add_epi32(c1, half), 8), true, out.code + at);
  store_codes(c0, c1, true, out.low + at);
  store_codes(r0, r1, true, out.fine + at);
  out.has_fine[group] = _mm512_test_epi32_mask(either, either) != 0 ? 1 : 0;
  out.scale[group] = s * 0x1p-6f;
  out.offset[group] = _mm512_reduce_add_epi32(_mm512_add_epi32(f0, f1)) * -12;
}

// Codes of a group from its two vectors.
void quantize_vectors(__m512 v0, __m512 v1, RowForm form, const Int8Rows& out, int64_t group) {
  if (form == RowForm::kE4m3Fp4) return quantize_e4m3(v0, v1, out, group);
  const bool fp4 = form == RowForm::kInt8Fp4;
  const float a =
      std::max(_mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(v0), _mm512_abs_ps(v1))), 1e-20f);
  const __m512 inverse = _mm512_set1_ps(127.0f / a);
  const __m512 top = _mm512_set1_ps(127.0f), bottom = _mm512_set1_ps(-127.0f);
  const auto round = [&](__m512 v) {
    // A NaN becomes -127: the comparisons of the plain row, and min and max give the second
    // operand.
    v = _mm512_min_ps(_mm512_max_ps(_mm512_mul_ps(v, inverse), bottom), top);
    return _mm512_cvtps_epi32(v);
  };
  const __m512i c0 = round(v0), c1 = round(v1);
  const int32_t sum = _mm512_reduce_add_epi32(_mm512_add_epi32(c0, c1));
  store_codes(c0, c1, fp4, out.code + group * kGroupCols);
  out.scale[group] = a / 127.0f;
  out.offset[group] = sum * (fp4 ? -12 : -128);
}

}  // namespace

void quantize_avx512(const float* x, RowForm form, const Int8Rows& out, int64_t group) {
  quantize_vectors(_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16), form, out, group);
}

void quantize_row_avx512(const Bf16* x, int64_t cols, RowForm form, const Int8Rows& out) {
  for (int64_t g = 0; g < cols / kGroupCols; ++g) {
    const Bf16* v = x + g * kGroupCols;
    quantize_vectors(widen_bf16(_mm256_loadu_si256((const __m256i*)v)),
                     widen_bf16(_mm256_loadu_si256((const __m256i*)(v + 16))), form, out, g);
  }
  clear_padding(out, cols);
}

}  // namespace fathom::kernels
