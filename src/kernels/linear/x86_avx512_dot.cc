// Products of few tokens straight from the stored rows (decode).
//
// Limit: DRAM.  64 bytes take about 29 (fp4), 14 (fp8) or 6 (bf16) vector operations for one token,
// two a cycle: 14, 7 and 3 cycles, against some 12 cycles at 16 GB/s a core.  DRAM gives its full
// rate to many streams only, so 8 rows 4 apart are read side by side, each with prefetches ahead.
#include "kernels/linear/x86_avx512_dot.h"

#include <immintrin.h>

#include "kernels/linear/prefetch.h"
#include "kernels/linear/x86_avx512_vec.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kFarBytes = 768;
constexpr int64_t kNearBytes = 384;
constexpr int64_t kShortRowAheadBytes = 512;
constexpr int64_t kPieceCols = 512;  // columns whose scales are widened at a time: 16 a row

template <bool kLong>
inline __attribute__((always_inline)) void prefetch_ahead(const uint8_t* p) {
  if (kLong) prefetch_far(p + kFarBytes);
  prefetch(p + (kLong ? kNearBytes : kShortRowAheadBytes));
}

// R rows and T tokens at a time.  The rows of a set lie `stride` apart and set i starts at row i,
// so R streams run through the block.  A row past the end repeats the last one.
template <int R>
struct Rows {
  const uint8_t* w[R];
  const uint8_t* next[R];  // where the streams go on in the block that likely comes next
  int64_t row[R];

  Rows(const RowBlock& b, int64_t stride, int64_t set) {
    for (int i = 0; i < R; ++i) {
      const int64_t r = i * stride + set;
      row[i] = r < b.rows ? r : b.rows - 1;
      w[i] = b.data + row[i] * b.row_bytes;
      next[i] = b.data + (b.rows + i * stride) * b.row_bytes;
    }
  }

  // Line `line` of each stream in the next block: the prefetch of a stream runs past its end there.
  void prefetch_next(int64_t line) const {
    for (int i = 0; i < R; ++i) {
      prefetch_far(next[i] + 64 * line);
    }
  }
};

template <int R, int T>
void store(const Rows<R>& rows, const __m512* acc, float* y) {
  for (int t = 0; t < T; ++t) {
    for (int i = 0; i < R; i += 4) {
      alignas(16) float sums[4];
      _mm_store_ps(sums, fold_lanes(acc[i * T + t], acc[(i + 1) * T + t], acc[(i + 2) * T + t],
                                    acc[(i + 3) * T + t]));
      for (int j = 0; j < 4; ++j) y[t * kBlockRows + rows.row[i + j]] = sums[j];
    }
  }
}

template <int R, int T, bool kLong>
void dot_fp4(const RowBlock& b, const float* const* x, float* y) {
  const __m512 values = e2m1_table();
  const int64_t stride = (b.rows + R - 1) / R;
  const int64_t scale_bytes = b.rows * (b.cols / 32);
  for (int64_t s = 0; s < stride; ++s) {
    // A share of the scales of the block that likely comes next.
    for (int64_t i = scale_bytes * s / stride; i < scale_bytes * (s + 1) / stride; i += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(b.scale + scale_bytes + i), _MM_HINT_T0);
    }
    const Rows<R> rows(b, stride, s);
    __m512 acc[R * T];
#pragma GCC unroll 16
    for (int i = 0; i < R * T; ++i) acc[i] = _mm512_setzero_ps();
    for (int64_t col = 0; col < b.cols; col += kPieceCols) {
      const int64_t left = (b.cols - col) / 32;
      const int64_t groups = left < 16 ? left : 16;
      if (s + 1 == stride && col < kFarBytes / 64 * kPieceCols)
        rows.prefetch_next(col / kPieceCols);
      alignas(64) float scale[R][16];
      for (int i = 0; i < R; ++i) {
        const uint8_t* p = b.scale + rows.row[i] * (b.cols / 32) + col / 32;
        _mm512_store_ps(scale[i], load_scales(p, groups));
      }
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t at = col + g * 32;
        __m512 even[T], odd[T];
#pragma GCC unroll 4
        for (int t = 0; t < T; ++t) {
          even[t] = _mm512_loadu_ps(x[t] + at);
          odd[t] = _mm512_loadu_ps(x[t] + at + 16);
        }
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
          const uint8_t* p = rows.w[i] + at / 2;
          const __m512i byte = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p));
          const __m512 table = _mm512_mul_ps(values, _mm512_set1_ps(scale[i][g]));
          // The permute reads the low 4 bits of its indices only.
          const __m512 w0 = _mm512_permutexvar_ps(byte, table);
          const __m512 w1 = _mm512_permutexvar_ps(_mm512_srli_epi32(byte, 4), table);
#pragma GCC unroll 4
          for (int t = 0; t < T; ++t) {
            acc[i * T + t] = _mm512_fmadd_ps(w0, even[t], acc[i * T + t]);
            acc[i * T + t] = _mm512_fmadd_ps(w1, odd[t], acc[i * T + t]);
          }
        }
        // One line a row every 4 groups.
#pragma GCC unroll 2
        for (int i = 0; i < R / 4; ++i) prefetch_ahead<kLong>(rows.w[(g & 3) + 4 * i] + at / 2);
      }
    }
    store<R, T>(rows, acc, y);
  }
}

// kGroups groups of 32 columns at a time, a divisor of theirs.  The folds keep the accumulators in
// registers, if there is one place only that adds to them.
template <int R, int T, bool kLong, int kGroups>
void dot_fp8(const RowBlock& b, const float* const* x, float* y) {
  constexpr bool kFold = T <= kAvx512UnfoldedTokens;
  const int64_t stride = (b.rows + R - 1) / R;
  for (int64_t s = 0; s < stride; ++s) {
    const Rows<R> rows(b, stride, s);
    __m512 acc[R * T];
    each<R * T>([&](auto i) __attribute__((always_inline)) { acc[i] = _mm512_setzero_ps(); });
    __m512i half[2 * kGroups];
    for (int64_t col = 0; col < b.cols; col += kPieceCols) {
      const int64_t end = b.cols - col < kPieceCols ? b.cols : col + kPieceCols;
      alignas(64) float scale[16];
      if (kFold) {
        // 2^8 is what unpack_e4m3 leaves out.
        const __m512 scales = load_scales(b.scale + col / 32, (end - col) / 32);
        _mm512_store_ps(scale, _mm512_mul_ps(scales, _mm512_set1_ps(0x1p8f)));
      }
      for (int64_t at = col; at < end; at += 32 * kGroups) {
        if (s + 1 == stride && at % 256 == 0 && at < kFarBytes * 4) rows.prefetch_next(at / 256);
        __m512 xs[2 * kGroups][T];
        each<2 * kGroups>([&](auto h) __attribute__((always_inline)) {
          each<T>([&](auto t) __attribute__((always_inline)) {
            xs[h][t] = _mm512_loadu_ps(x[t] + at + 16 * h);
            if (kFold) {
              xs[h][t] = _mm512_mul_ps(xs[h][t], _mm512_set1_ps(scale[(at - col) / 32 + h / 2]));
            }
          });
        });
        each<R>([&](auto i) __attribute__((always_inline)) {
          const uint8_t* w = rows.w[i] + at;
          prefetch_ahead<kLong>(w);
          each<kGroups>([&](auto g) __attribute__((always_inline)) {
            __m512 w0, w1;
            unpack_e4m3_in_memory(w + 32 * g, &half[i % 2 * kGroups + g], w0, w1);
            each<T>([&](auto t) __attribute__((always_inline)) {
              acc[i * T + t] = _mm512_fmadd_ps(w0, xs[2 * g][t], acc[i * T + t]);
              acc[i * T + t] = _mm512_fmadd_ps(w1, xs[2 * g + 1][t], acc[i * T + t]);
            });
          });
        });
      }
    }
    store<R, T>(rows, acc, y);
  }
}

template <int R, int T, bool kLong>
void dot_bf16(const RowBlock& b, const float* const* x, float* y) {
  const int64_t stride = (b.rows + R - 1) / R;
  const int64_t whole = b.cols / 16 * 16;
  for (int64_t s = 0; s < stride; ++s) {
    const Rows<R> rows(b, stride, s);
    __m512 acc[R * T];
#pragma GCC unroll 24
    for (int i = 0; i < R * T; ++i) acc[i] = _mm512_setzero_ps();
    for (int64_t at = 0; at < whole; at += 16) {
      if (s + 1 == stride && at % 256 == 0 && at < kFarBytes * 4) rows.prefetch_next(at / 256);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        const __m512 w = widen_bf16(_mm256_loadu_si256((const __m256i*)(rows.w[i] + 2 * at)));
#pragma GCC unroll 6
        for (int t = 0; t < T; ++t) {
          acc[i * T + t] = _mm512_fmadd_ps(w, _mm512_loadu_ps(x[t] + at), acc[i * T + t]);
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < R / 2; ++i)
        prefetch_ahead<kLong>(rows.w[((at >> 4) & 1) + 2 * i] + 2 * at);
    }
    if (whole < b.cols) {
      const __mmask16 mask = first_lanes(b.cols - whole);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        const __m512 w = widen_bf16(_mm256_maskz_loadu_epi16(mask, rows.w[i] + 2 * whole));
#pragma GCC unroll 6
        for (int t = 0; t < T; ++t) {
          acc[i * T + t] = _mm512_fmadd_ps(w, _mm512_loadu_ps(x[t] + whole), acc[i * T + t]);
        }
      }
    }
    store<R, T>(rows, acc, y);
  }
}

template <int R, int T, bool kLong>
void dot_of_type(const RowBlock& b, const float* const* x, float* y) {
  if constexpr (T > kAvx512DotTokens) {
    dot_bf16<R, T, kLong>(b, x, y);
  } else {
    switch (b.dtype) {
      case DType::kI8:
        return dot_fp4<R, T, kLong>(b, x, y);
      case DType::kF8E4M3:
        // x of 64 columns of 4 tokens does not fit the registers.
        if (T < 4 && b.cols % 64 == 0) return dot_fp8<R, T, kLong, 2>(b, x, y);
        return dot_fp8<R, T, kLong, 1>(b, x, y);
      default:
        return dot_bf16<R, T, kLong>(b, x, y);
    }
  }
}

template <int R, int T>
void dot_any(const RowBlock& b, const float* const* x, float* y) {
  if (b.row_bytes >= kLongRowBytes) return dot_of_type<R, T, true>(b, x, y);
  dot_of_type<R, T, false>(b, x, y);
}

}  // namespace

void dot_avx512(const RowBlock& block, const float* const* x, int64_t tokens, float* y) {
  switch (tokens) {
    case 1:
      return dot_any<8, 1>(block, x, y);
    case 2:
      return dot_any<8, 2>(block, x, y);
    case 3:
      return dot_any<4, 3>(block, x, y);
    case 4:
      return dot_any<4, 4>(block, x, y);
    case 5:
      return dot_any<4, 5>(block, x, y);
    default:
      return dot_any<4, 6>(block, x, y);
  }
}

}  // namespace fathom::kernels
