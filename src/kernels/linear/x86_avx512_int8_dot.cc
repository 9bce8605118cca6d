// Integer products of 1 to 3 tokens straight from the stored rows (decode), AVX-512 VNNI.
//
// Limit: DRAM up to 2 or 3 tokens.  64 bytes take about 14 (fp4) or 11 (fp8) vector operations for
// one token, two a cycle: 6 to 7 cycles, against some 12 cycles at 16 GB/s a core.  A further token
// adds about 5; from 4 tokens on x86_avx512_int8_few.cc costs less.
//
// DRAM gives its full rate to many streams only: a run of rows is cut in 16 parts that are read
// side by side, with prefetches ahead, which go from a row of a part to the next.
//
// 16 rows by 128 columns at a time: a row gives a vector with 4 partial sums of each of 4 groups;
// shuffles and adds of 16 of them leave a vector of 16 rows for every group.
#include <immintrin.h>

#include "kernels/linear/int8_product.h"
#include "kernels/linear/prefetch.h"
#include "kernels/linear/x86_avx512_int8.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kFarBytes = 640;
constexpr int64_t kNearBytes = 192;
constexpr int64_t kShortRowAheadBytes = 512;
constexpr int64_t kStep = 128;  // columns

template <bool kLong>
inline __attribute__((always_inline)) void prefetch_ahead(const uint8_t* p) {
  if (kLong) prefetch_far(p + kFarBytes);
  prefetch(p + (kLong ? kNearBytes : kShortRowAheadBytes));
}

// x for 128 columns: T codes, a token or one of its bytes each.
template <int T>
struct Columns {
  __m512i a[T], b[T];  // places 0-15 and 16-31 of the four groups; fp4: the low, the high nibbles
};

template <int T>
void load_halves(const int8_t* const* x, Columns<T>& c) {
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    const __m512i v0 = _mm512_loadu_si512(x[t]), v1 = _mm512_loadu_si512(x[t] + 64);
    c.a[t] = _mm512_shuffle_i32x4(v0, v1, 0x88);
    c.b[t] = _mm512_shuffle_i32x4(v0, v1, 0xdd);
  }
}

// One row by 128 columns: dwords 4 g .. 4 g + 3 of sum[t] add up to group g.
template <int kPlanes>  // 1: int8; 2, 3: e4m3 without and with fine codes
struct Fp4Row {
  static constexpr int64_t kBytes = 64;
  static constexpr int kCodes = kPlanes;  // a token
  static constexpr float kUnit = 0.5f;
  static constexpr bool kHasOffset = true;
  __m512i table = e2m1_bytes(12);

  template <int T>
  void row(const uint8_t* w, int64_t cols, const Columns<T * kPlanes>& x, __m512i* sum) const {
    const __m512i v =
        cols == 128 ? _mm512_loadu_si512(w) : _mm512_maskz_loadu_epi8(first_bytes(cols / 2), w);
    const __m512i low = _mm512_permutexvar_epi8(v, table);
    const __m512i high = _mm512_permutexvar_epi8(_mm512_srli_epi16(v, 4), table);
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      __m512i s = _mm512_dpbusd_epi32(_mm512_setzero_si512(), low, x.a[t * kPlanes]);
      s = _mm512_dpbusd_epi32(s, high, x.b[t * kPlanes]);
      if constexpr (kPlanes >= 2) {
        s = _mm512_dpbusd_epi32(_mm512_slli_epi32(s, 8), low, x.a[t * kPlanes + 1]);
        s = _mm512_dpbusd_epi32(s, high, x.b[t * kPlanes + 1]);
      }
      if constexpr (kPlanes == 3) {
        s = _mm512_dpbusd_epi32(_mm512_slli_epi32(s, 3), low, x.a[t * kPlanes + 2]);
        s = _mm512_dpbusd_epi32(s, high, x.b[t * kPlanes + 2]);
      }
      sum[t] = s;
    }
  }
};

// x and w in the order of fp4's x: the first 16 columns of the four groups, then the others, so
// that one vector takes the sums of all four.
struct Fp8Row {
  static constexpr int64_t kBytes = 128;
  static constexpr int kCodes = 1;
  static constexpr float kUnit = 0x1p-6f;
  static constexpr bool kHasOffset = false;
  const E4m3Bytes table = e4m3_bytes();

  struct Planes {
    __m512i high, low;
    __mmask64 negative;  // the sign of a weight goes to x
  };
  Planes planes(__m512i w) const {
    const __mmask64 big = _mm512_test_epi8_mask(w, _mm512_set1_epi8(0x40));
    const __m512i low = _mm512_permutexvar_epi8(w, table.low);
    return {_mm512_maskz_permutexvar_epi8(big, w, table.high_big),
            _mm512_mask_permutexvar_epi8(low, big, w, table.low_big), _mm512_movepi8_mask(w)};
  }
  template <int T>
  void row(const uint8_t* w, int64_t cols, const Columns<T>& x, __m512i* sum) const {
    __m512i v0, v1;
    if (cols == 128) {
      v0 = _mm512_loadu_si512(w);
      v1 = _mm512_loadu_si512(w + 64);
    } else {
      v0 = _mm512_maskz_loadu_epi8(first_bytes(cols), w);
      v1 = _mm512_maskz_loadu_epi8(cols > 64 ? first_bytes(cols - 64) : 0, w + 64);
    }
    const Planes a = planes(_mm512_shuffle_i32x4(v0, v1, 0x88));
    const Planes b = planes(_mm512_shuffle_i32x4(v0, v1, 0xdd));
    const __m512i zero = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const __m512i xa = _mm512_mask_sub_epi8(x.a[t], a.negative, zero, x.a[t]);
      const __m512i xb = _mm512_mask_sub_epi8(x.b[t], b.negative, zero, x.b[t]);
      const __m512i high = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(zero, a.high, xa), b.high, xb);
      const __m512i s = _mm512_dpbusd_epi32(_mm512_slli_epi32(high, 8), a.low, xa);
      sum[t] = _mm512_dpbusd_epi32(s, b.low, xb);
    }
  }
};

// Four rows' sums to [row 0 .. 3] of every group.
__m512i fold_rows(__m512i r0, __m512i r1, __m512i r2, __m512i r3) {
  const __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(r0, r1), _mm512_unpackhi_epi32(r0, r1));
  const __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(r2, r3), _mm512_unpackhi_epi32(r2, r3));
  return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

// Rows of a run that are read together.
struct RunRows {
  static constexpr int64_t kRows = 16;
  const uint8_t* w[16];
  const uint8_t* first_scale;
  __m512i scale_at;  // of each row behind first_scale

  RunRows(const Int8RowRun& run, int64_t part, int64_t turn) {
    const int64_t groups = run.w->cols / kGroupCols, bytes = stored_row_bytes(*run.w);
    const bool fp4 = is_fp4(*run.w);
    const auto scale_row = [&](int64_t row) { return (fp4 ? row : row / kBlockRows) * groups; };
    first_scale = run.w->scale + scale_row(run.first + turn);
    alignas(64) int32_t at[16];
    for (int i = 0; i < 16; ++i) {
      const int64_t last = run.first + run.rows - 1, r = run.first + i * part + turn;
      const int64_t row = r < last ? r : last;
      w[i] = run.w->data + row * bytes;
      at[i] = static_cast<int32_t>(scale_row(row) - scale_row(run.first + turn));
    }
    scale_at = _mm512_load_si512(at);
    // The scales of the rows two turns ahead; those of fp8 stay in L1 for 32 rows.
    if (!fp4) return;
    for (int i = 0; i < 16; ++i) {
      const uint8_t* ahead = first_scale + at[i] + 2 * groups;
      for (int64_t line = 0; line < groups; line += 64) {
        _mm_prefetch(reinterpret_cast<const char*>(ahead + line), _MM_HINT_T0);
      }
    }
  }

  // The scales of up to 4 groups, a dword a row.
  __m512i scales(int64_t group, int64_t groups) const {
    const uint8_t* first = first_scale + group;
    return groups == 4 ? _mm512_i32gather_epi32(scale_at, first, 1)
                       : few_scales(first, scale_at, groups);
  }
};

// acc of T tokens goes on with columns [col, col + 128), less at the end.
template <class Row, int T, bool kLong>
inline __attribute__((always_inline)) void dot_columns(const Row& kernel, const RunRows& rows,
                                                       int64_t cols, const Int8Rows& x, int64_t col,
                                                       __m512 (&acc)[T]) {
  const int64_t some = cols - col < 128 ? cols - col : 128;
  const int64_t group = col / kGroupCols, groups = some / kGroupCols;
  const int64_t at = col / 128 * Row::kBytes;
  constexpr int kCodes = Row::kCodes;
  const int8_t* code[T * kCodes];
  for (int t = 0; t < T; ++t) {
    const int64_t place = t * x.code_stride + col;
    code[t * kCodes] = x.code + place;
    if (kCodes > 1) code[t * kCodes + 1] = x.low + place;
    if (kCodes > 2) code[t * kCodes + 2] = x.fine + place;
  }
  Columns<T * kCodes> columns;
  load_halves<T * kCodes>(code, columns);
  __m512i sums[T][4];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    __m512i s[4][T];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const uint8_t* w = rows.w[4 * q + i] + at;
      kernel.template row<T>(w, some, columns, s[i]);
      prefetch_ahead<kLong>(w);
      if (Row::kBytes == 128) prefetch_ahead<kLong>(w + 64);
    }
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) sums[t][q] = fold_rows(s[0][t], s[1][t], s[2][t], s[3][t]);
  }
  const __m512i words = rows.scales(group, groups);
#pragma GCC unroll 8
  for (int t = 0; t < T; ++t) {
    // [rows 4 q .. 4 q + 3] of groups 0 .. 3 in [q] to the 16 rows of group g in [g].
    transpose_lanes(sums[t][0], sums[t][1], sums[t][2], sums[t][3]);
  }
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    if (g >= groups) break;
    __m512 scale = scale_of_byte(words, g);
    if (kCodes == 3) scale = _mm512_mul_ps(scale, _mm512_set1_ps(0.125f));
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) {
      const int64_t place = t * x.group_stride + group + g;
      __m512i sum = sums[t][g];
      if (Row::kHasOffset) {
        // That of e4m3 is in units of its fine codes.
        const int32_t offset = kCodes == 2 ? x.offset[place] >> 3 : x.offset[place];
        sum = _mm512_add_epi32(sum, _mm512_set1_epi32(offset));
      }
      const __m512 f = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), scale);
      acc[t] = _mm512_fmadd_ps(f, _mm512_set1_ps(x.scale[place]), acc[t]);
    }
  }
}

using Sums = __m512;
void store_sums(__m512 sums, float unit, float* out) {
  _mm512_store_ps(out, _mm512_mul_ps(sums, _mm512_set1_ps(unit)));
}

#include "kernels/linear/int8_dot.inc"

}  // namespace

void dot_int8_avx512(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y,
                     int64_t y_stride) {
  static_assert(kAvx512RowTokens == 3);
  if (tokens > kAvx512RowTokens) return dot_few_int8_avx512(run, x, tokens, y, y_stride);
  dot_rows(run, x, tokens, y, y_stride);
}

}  // namespace fathom::kernels
