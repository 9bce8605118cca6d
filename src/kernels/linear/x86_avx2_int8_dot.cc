// Integer products of 1 to 3 tokens straight from the stored rows (decode), AVX2; up to 8 take
// turns.
//
// Limit: DRAM for fp4 and one token: 32 bytes take about 15 vector operations, two to three a
// cycle. fp8 takes 27, of which 20 widen the codes, and stays at two thirds of that rate.
//
// A run of rows is cut in 8 parts that are read side by side, with a prefetch 512 bytes ahead.  8
// rows by 64 columns at a time: a row gives a vector with 4 partial sums of each of 2 groups;
// shuffles and adds of 8 of them leave a vector of 8 rows for each group.
#include <immintrin.h>

#include <algorithm>

#include "kernels/linear/int8_product.h"
#include "kernels/linear/prefetch.h"
#include "kernels/linear/x86_avx2_int8.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kPrefetchBytes = 512;
constexpr int64_t kStep = 64;  // columns
// Rows that stay in L2 while the tokens take turns.
constexpr int64_t kTurnBytes = 128 * 1024;

inline __attribute__((always_inline)) void prefetch_ahead(const uint8_t* p) {
  prefetch(p + kPrefetchBytes);
}

__m256i halves(const void* low, const void* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)low)),
                                 _mm_loadu_si128((const __m128i*)high), 1);
}

// One row by 64 columns, of which `cols` are there: dwords 4 g .. 4 g + 3 of sum[t] add up to group
// g.
template <int kPlanes>  // 1: int8; 2, 3: e4m3 without and with fine codes
struct Fp4Row {
  static constexpr int64_t kBytes = kStep / 2;
  static constexpr int kCodes = kPlanes;  // a token
  static constexpr float kUnit = 0.5f;
  static constexpr bool kHasOffset = true;

  // 64 places of x: the even columns of both groups, then the odd ones.
  struct Columns {
    __m256i a, b;
    void load(const int8_t* code) {
      a = halves(code, code + 32);
      b = halves(code + 16, code + 48);
    }
  };

  static constexpr int16_t weight_of(int plane) {
    constexpr int16_t kOf[3] = {kPlanes == 1   ? 1
                                : kPlanes == 2 ? 256
                                               : 2048,
                                kPlanes == 2 ? 1 : 8, 1};
    return kOf[plane];
  }

  template <int T>
  void row(const uint8_t* w, int64_t cols, const Columns (&x)[T * kPlanes], __m256i* sum) const {
    const __m256i table =
        _mm256_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0, 12, 13, 14, 15,
                         16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    const __m256i nibble = _mm256_set1_epi8(15);
    const __m256i v = cols == kStep ? _mm256_loadu_si256((const __m256i*)w)
                                    : _mm256_zextsi128_si256(_mm_loadu_si128((const __m128i*)w));
    const __m256i low = _mm256_shuffle_epi8(table, _mm256_and_si256(v, nibble));
    const __m256i high =
        _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(v, 4), nibble));
#pragma GCC unroll 3
    for (int t = 0; t < T; ++t) {
      __m256i s = _mm256_setzero_si256();
#pragma GCC unroll 3
      for (int p = 0; p < kPlanes; ++p) {
        const Columns& c = x[t * kPlanes + p];
        // Sums of 4 products of at most 24 * 128.
        const __m256i pairs =
            _mm256_add_epi16(_mm256_maddubs_epi16(low, c.a), _mm256_maddubs_epi16(high, c.b));
        s = _mm256_add_epi32(s, _mm256_madd_epi16(pairs, _mm256_set1_epi16(weight_of(p))));
      }
      sum[t] = s;
    }
  }
};

struct Fp8Row {
  static constexpr int64_t kBytes = kStep;
  static constexpr int kCodes = 1;
  static constexpr float kUnit = 0x1p-6f;
  static constexpr bool kHasOffset = false;

  // 16-bit lanes in the order in which unpacking leaves the weights.
  struct Columns {
    __m256i x[4];
    void load(const int8_t* code) {
      for (int half = 0; half < 2; ++half) {
        const __m256i v = halves(code + 16 * half, code + 32 + 16 * half);
        x[2 * half] = _mm256_srai_epi16(_mm256_unpacklo_epi8(v, v), 8);
        x[2 * half + 1] = _mm256_srai_epi16(_mm256_unpackhi_epi8(v, v), 8);
      }
    }
  };

  const E4m3Units units;

  template <int T>
  void row(const uint8_t* w, int64_t cols, const Columns (&x)[T], __m256i* sum) const {
    __m256i v[4];
    if (cols == kStep) {
      units(halves(w, w + 32), &v[0], &v[1]);
      units(halves(w + 16, w + 48), &v[2], &v[3]);
    } else {
      units(_mm256_zextsi128_si256(_mm_loadu_si128((const __m128i*)w)), &v[0], &v[1]);
      units(_mm256_zextsi128_si256(_mm_loadu_si128((const __m128i*)(w + 16))), &v[2], &v[3]);
    }
#pragma GCC unroll 3
    for (int t = 0; t < T; ++t) {
      __m256i s = _mm256_madd_epi16(v[0], x[t].x[0]);
#pragma GCC unroll 3
      for (int i = 1; i < 4; ++i) s = _mm256_add_epi32(s, _mm256_madd_epi16(v[i], x[t].x[i]));
      sum[t] = s;
    }
  }
};

// Four rows' sums to [row 0 .. 3] of both groups.
__m256i fold_rows(const __m256i& r0, const __m256i& r1, const __m256i& r2, const __m256i& r3) {
  const __m256i a = _mm256_add_epi32(_mm256_unpacklo_epi32(r0, r1), _mm256_unpackhi_epi32(r0, r1));
  const __m256i b = _mm256_add_epi32(_mm256_unpacklo_epi32(r2, r3), _mm256_unpackhi_epi32(r2, r3));
  return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

// Rows of a run that are read together.
struct RunRows {
  static constexpr int64_t kRows = 8;
  const uint8_t* w[8];
  const uint8_t* scale[8];

  RunRows(const Int8RowRun& run, int64_t part, int64_t turn) {
    const int64_t groups = run.w->cols / kGroupCols, bytes = stored_row_bytes(*run.w);
    const bool fp4 = is_fp4(*run.w);
    for (int i = 0; i < 8; ++i) {
      const int64_t row = std::min(run.first + run.rows - 1, run.first + i * part + turn);
      w[i] = run.w->data + row * bytes;
      scale[i] = run.w->scale + (fp4 ? row : row / kBlockRows) * groups;
      // The scales of the row two turns ahead; those of fp8 stay in L1 for 32 rows.
      for (int64_t line = 0; fp4 && line < groups; line += 64) {
        prefetch(scale[i] + 2 * groups + line);
      }
    }
  }

  // Of one group; code 0 is 2^-127, a subnormal.
  __m256 scales(int64_t group) const {
    const __m256i bytes =
        _mm256_setr_epi32(scale[0][group], scale[1][group], scale[2][group], scale[3][group],
                          scale[4][group], scale[5][group], scale[6][group], scale[7][group]);
    return _mm256_castsi256_ps(
        _mm256_max_epu32(_mm256_slli_epi32(bytes, 23), _mm256_set1_epi32(1 << 22)));
  }
};

// acc of T tokens goes on with group `group` of 8 rows.
template <int kCodes, bool kHasOffset, int T>
void add_group(const __m256i (&sum)[T], const RunRows& rows, const Int8Rows& x, int64_t group,
               __m256 (&acc)[T]) {
  __m256 scale = rows.scales(group);
  if (kCodes == 3) scale = _mm256_mul_ps(scale, _mm256_set1_ps(0.125f));
#pragma GCC unroll 3
  for (int t = 0; t < T; ++t) {
    const int64_t place = t * x.group_stride + group;
    __m256i s = sum[t];
    if (kHasOffset) {
      // That of e4m3 is in units of its fine codes.
      const int32_t offset = kCodes == 2 ? x.offset[place] >> 3 : x.offset[place];
      s = _mm256_add_epi32(s, _mm256_set1_epi32(offset));
    }
    const __m256 f = _mm256_mul_ps(_mm256_cvtepi32_ps(s), scale);
    acc[t] = _mm256_fmadd_ps(f, _mm256_set1_ps(x.scale[place]), acc[t]);
  }
}

// acc of T tokens goes on with columns [col, col + 64), less at the end.  Bound by arithmetic: one
// prefetch does for long rows as for short ones.
template <class Row, int T, bool>
inline __attribute__((always_inline)) void dot_columns(const Row& kernel, const RunRows& rows,
                                                       int64_t cols, const Int8Rows& x, int64_t col,
                                                       __m256 (&acc)[T]) {
  constexpr int kCodes = Row::kCodes;
  const int64_t some = std::min(kStep, cols - col), at = col / kStep * Row::kBytes;
  typename Row::Columns columns[T * kCodes];
  for (int t = 0; t < T; ++t) {
    const int64_t place = t * x.code_stride + col;
    columns[t * kCodes].load(x.code + place);
    if (kCodes > 1) columns[t * kCodes + 1].load(x.low + place);
    if (kCodes > 2) columns[t * kCodes + 2].load(x.fine + place);
  }
  __m256i sums[2][T];
#pragma GCC unroll 2
  for (int q = 0; q < 2; ++q) {
    __m256i s[4][T];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const uint8_t* w = rows.w[4 * q + i] + at;
      kernel.template row<T>(w, some, columns, s[i]);
      if (at % 64 == 0) prefetch_ahead(w);
    }
#pragma GCC unroll 3
    for (int t = 0; t < T; ++t) sums[q][t] = fold_rows(s[0][t], s[1][t], s[2][t], s[3][t]);
  }
  __m256i sum[T];
#pragma GCC unroll 3
  for (int t = 0; t < T; ++t) sum[t] = _mm256_permute2x128_si256(sums[0][t], sums[1][t], 0x20);
  add_group<kCodes, Row::kHasOffset>(sum, rows, x, col / kGroupCols, acc);
  if (some < kStep) return;
#pragma GCC unroll 3
  for (int t = 0; t < T; ++t) sum[t] = _mm256_permute2x128_si256(sums[0][t], sums[1][t], 0x31);
  add_group<kCodes, Row::kHasOffset>(sum, rows, x, col / kGroupCols + 1, acc);
}

using Sums = __m256;
void store_sums(__m256 sums, float unit, float* out) {
  _mm256_store_ps(out, _mm256_mul_ps(sums, _mm256_set1_ps(unit)));
}

#include "kernels/linear/int8_dot.inc"

}  // namespace

void dot_int8_avx2(const Int8RowRun& run, const Int8Rows& x, int64_t tokens, float* y,
                   int64_t y_stride) {
  static_assert(kYmmDotTokens == 3);
  if (tokens <= kYmmDotTokens) return dot_rows(run, x, tokens, y, y_stride);
  const int64_t turns = (tokens + kYmmDotTokens - 1) / kYmmDotTokens;
  const int64_t rows = std::max(
      RunRows::kRows, kTurnBytes / stored_row_bytes(*run.w) / RunRows::kRows * RunRows::kRows);
  for (int64_t r = 0; r < run.rows; r += rows) {
    const Int8RowRun some = {run.w, run.first + r, std::min(rows, run.rows - r)};
    for (int64_t turn = 0; turn < turns; ++turn) {
      const int64_t first = tokens * turn / turns, end = tokens * (turn + 1) / turns;
      dot_rows(some, x.from(first), end - first, y + first * y_stride + r, y_stride);
    }
  }
}

}  // namespace fathom::kernels
