// The integer rows of `linear` with AVX2 (int8.h).
//
// A tile of fp4 holds bytes (value in halves + 12) for vpmaddubsw, whose sums of 2 products, and of
// 4 such sums, stay below 2^15; a tile of fp8 holds int16 units for vpmaddwd.  e4m3 x is two or
// three such products a byte of fp4 weights.  A few tokens take rows as they are stored
// (x86_avx2_int8_dot.cc).
#include "kernels/linear/x86_avx2_int8.h"

#include <immintrin.h>

#include <algorithm>

#include "kernels/linear/x86_avx2_vec.h"

namespace fathom::kernels {
namespace {

constexpr int kVectors = kYmmVectors;
constexpr int64_t kVectorBytes = 32;

// ---- x

float greatest(__m256 v) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

void quantize_e4m3(const float* x, const Int8Rows& out, int64_t group) {
  __m256 v[4];
  for (int i = 0; i < 4; ++i) v[i] = _mm256_loadu_ps(x + 8 * i);
  const float s = e4m3_scale(v);
  const __m256 inverse = _mm256_set1_ps(1.0f / s);
  const __m256 unit = _mm256_set1_ps(0x1p6f), fine_unit = _mm256_set1_ps(0x1p9f);
  alignas(32) int32_t units[32], values[32];
  for (int i = 0; i < 4; ++i) {
    const __m256 e4m3 = round_e4m3(_mm256_mul_ps(v[i], inverse));
    _mm256_store_si256((__m256i*)(units + 8 * i), _mm256_cvtps_epi32(_mm256_mul_ps(e4m3, unit)));
    _mm256_store_si256((__m256i*)(values + 8 * i),
                       _mm256_cvtps_epi32(_mm256_mul_ps(e4m3, fine_unit)));
  }
  int32_t sum = 0, any_fine = 0;
  for (int i = 0; i < 32; ++i) {
    const int64_t place = group * kGroupCols + i / 2 + i % 2 * 16;
    const int32_t fine = values[i] - 8 * units[i];
    out.low[place] = static_cast<int8_t>(units[i] & 255);
    out.code[place] = static_cast<int8_t>((units[i] + 128) >> 8);
    out.fine[place] = static_cast<int8_t>(fine);
    any_fine |= fine;
    sum += values[i];
  }
  out.has_fine[group] = any_fine != 0 ? 1 : 0;
  out.scale[group] = s * 0x1p-6f;
  out.offset[group] = sum * -12;
}

void quantize(const float* x, RowForm form, const Int8Rows& out, int64_t group) {
  if (form == RowForm::kE4m3Fp4) return quantize_e4m3(x, out, group);
  const bool fp4 = form == RowForm::kInt8Fp4;
  int8_t* code = out.code + group * kGroupCols;
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  __m256 most = _mm256_setzero_ps();
  for (int i = 0; i < 32; i += 8) {
    most = _mm256_max_ps(most, _mm256_and_ps(_mm256_loadu_ps(x + i), magnitude));
  }
  const float a = std::max(1e-20f, greatest(most));
  const __m256 inverse = _mm256_set1_ps(127.0f / a);
  const __m256 top = _mm256_set1_ps(127.0f), bottom = _mm256_set1_ps(-127.0f);
  alignas(32) int32_t codes[32];
  int32_t sum = 0;
  for (int i = 0; i < 32; i += 8) {
    __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), inverse);
    v = _mm256_min_ps(_mm256_max_ps(v, bottom), top);
    _mm256_store_si256((__m256i*)(codes + i), _mm256_cvtps_epi32(v));
  }
  for (int i = 0; i < 32; ++i) {
    code[fp4 ? i / 2 + i % 2 * 16 : i] = static_cast<int8_t>(codes[i]);
    sum += codes[i];
  }
  out.scale[group] = a / 127.0f;
  out.offset[group] = sum * (fp4 ? -12 : -128);
}

void quantize_row(const Bf16* x, int64_t cols, RowForm form, const Int8Rows& out) {
  for (int64_t g = 0; g < cols / kGroupCols; ++g) {
    float v[kGroupCols];
    for (int64_t i = 0; i < kGroupCols; ++i) v[i] = to_float(x[g * kGroupCols + i]);
    quantize(v, form, out, g);
  }
  clear_padding(out, cols);
}

// ---- tiles

// Dword j of each of 8 vectors, for all j.
void transpose(__m256i (&v)[8]) {
  __m256i a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
    a[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm256_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm256_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm256_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    v[c] = _mm256_permute2x128_si256(b[c], b[4 + c], 0x20);
    v[4 + c] = _mm256_permute2x128_si256(b[c], b[4 + c], 0x31);
  }
}

// `bytes` <= 32 bytes at `at` of rows [row, row + 8), zeros after them; rows past the last repeat
// it.
void load_rows(const RowBlock& b, int64_t row, int64_t at, int64_t bytes, __m256i (&v)[8]) {
  for (int i = 0; i < 8; ++i) {
    const uint8_t* p = b.data + std::min(row + i, b.rows - 1) * b.row_bytes + at;
    v[i] = bytes == 32 ? _mm256_loadu_si256((const __m256i*)p)
                       : _mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)p));
  }
}

void unpack_fp4(const RowBlock& b, int64_t col, int64_t cols, std::byte* tile) {
  const __m256i table = _mm256_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0,
                                         12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
  const __m256i nibble = _mm256_set1_epi8(15);
  for (int64_t i = 0; i < cols; i += 64) {
    const int64_t groups = std::min<int64_t>(2, (cols - i) / kGroupCols);
    for (int64_t row = 0; row < kBlockRows; row += 8) {
      __m256i v[8];
      load_rows(b, row, (col + i) / 2, 16 * groups, v);
      transpose(v);
      for (int64_t j = 0; j < 4 * groups; ++j) {
        std::byte* out =
            tile + (i / kGroupCols + j / 4) * kYmmFp4GroupBytes + j % 4 * kYmmStepBytes + row * 4;
        const __m256i low = _mm256_and_si256(v[j], nibble);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(v[j], 4), nibble);
        _mm256_store_si256((__m256i*)out, _mm256_shuffle_epi8(table, low));
        _mm256_store_si256((__m256i*)(out + 4 * kYmmStepBytes), _mm256_shuffle_epi8(table, high));
      }
    }
  }
  auto* scales = reinterpret_cast<float*>(tile + kYmmScaleOffset);
  for (int64_t r = 0; r < b.rows; ++r) {
    const uint8_t* s = b.scale + (r * b.cols + col) / kGroupCols;
    for (int64_t g = 0; g < cols / kGroupCols; ++g) {
      scales[g * kBlockRows + r] = ue8m0_to_float(s[g]);
    }
  }
}

void unpack_fp8(const RowBlock& b, int64_t col, int64_t cols, std::byte* tile) {
  const E4m3Units units;
  for (int64_t i = 0; i < cols; i += kGroupCols) {
    for (int64_t row = 0; row < kBlockRows; row += 8) {
      __m256i v[8];
      load_rows(b, row, col + i, 32, v);
      transpose(v);
      for (int64_t j = 0; j < 8; ++j) {
        // Rows 0, 1, 4, 5 and 2, 3, 6, 7: 4 columns each.
        __m256i low, high;
        units(v[j], &low, &high);
        const __m256 a = _mm256_castsi256_ps(low), c = _mm256_castsi256_ps(high);
        std::byte* out =
            tile + i / kGroupCols * kYmmFp8GroupBytes + 2 * j * kYmmStepBytes + row * 4;
        _mm256_store_ps((float*)out, _mm256_shuffle_ps(a, c, 0x88));
        _mm256_store_ps((float*)(out + kYmmStepBytes), _mm256_shuffle_ps(a, c, 0xdd));
      }
    }
  }
}

void unpack(const RowBlock& block, int64_t col, int64_t cols, std::byte* tile) {
  if (block.dtype == DType::kI8) {
    unpack_fp4(block, col, cols, tile);
  } else {
    unpack_fp8(block, col, cols, tile);
  }
}

// ---- products: one token by the tile's 32 rows, or some by 16 of them

__m256i load(const std::byte* p) { return _mm256_load_si256((const __m256i*)p); }

void group_sums_fp4(const std::byte* w, const int8_t* code, int32_t offset,
                    __m256i (&sum)[kVectors]) {
  const __m256i ones = _mm256_set1_epi16(1);
  for (__m256i& s : sum) s = _mm256_set1_epi32(offset);
  for (int half = 0; half < 2; ++half, w += 4 * kYmmStepBytes, code += 16) {
    __m256i pairs[kVectors] = {};
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      int32_t four;
      __builtin_memcpy(&four, code + 4 * k, 4);
      const __m256i x = _mm256_set1_epi32(four);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const __m256i p = _mm256_maddubs_epi16(load(w + k * kYmmStepBytes + v * kVectorBytes), x);
        pairs[v] = _mm256_add_epi16(pairs[v], p);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = _mm256_add_epi32(sum[v], _mm256_madd_epi16(pairs[v], ones));
    }
  }
}

void group_sums_fp4_e4m3(const std::byte* w, const int8_t* high, const int8_t* low, int32_t offset,
                         __m256i (&sum)[kVectors]) {
  const __m256i ones = _mm256_set1_epi16(1);
  for (__m256i& s : sum) s = _mm256_set1_epi32(offset);
  for (int half = 0; half < 2; ++half, w += 4 * kYmmStepBytes, high += 16, low += 16) {
    __m256i pairs[2][kVectors] = {};
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      int32_t four[2];
      __builtin_memcpy(&four[0], high + 4 * k, 4);
      __builtin_memcpy(&four[1], low + 4 * k, 4);
      const __m256i xh = _mm256_set1_epi32(four[0]), xl = _mm256_set1_epi32(four[1]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const __m256i weights = load(w + k * kYmmStepBytes + v * kVectorBytes);
        pairs[0][v] = _mm256_add_epi16(pairs[0][v], _mm256_maddubs_epi16(weights, xh));
        pairs[1][v] = _mm256_add_epi16(pairs[1][v], _mm256_maddubs_epi16(weights, xl));
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i highs = _mm256_slli_epi32(_mm256_madd_epi16(pairs[0][v], ones), 8);
      const __m256i lows = _mm256_madd_epi16(pairs[1][v], ones);
      sum[v] = _mm256_add_epi32(sum[v], _mm256_add_epi32(highs, lows));
    }
  }
}

void group_sums_fp8(const std::byte* w, const int16_t* x16, __m256i (&sum)[kVectors]) {
  for (__m256i& s : sum) s = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int k = 0; k < 16; ++k) {
    int32_t two;
    __builtin_memcpy(&two, x16 + 2 * k, 4);
    const __m256i x = _mm256_set1_epi32(two);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i p = _mm256_madd_epi16(load(w + k * kYmmStepBytes + v * kVectorBytes), x);
      sum[v] = _mm256_add_epi32(sum[v], p);
    }
  }
}

// fp8 by int8, or fp4 by e4m3.
template <bool kFp8>
void multiply_token(const Int8TileProduct& p, int64_t token) {
  const Int8Rows x = p.x.from(token);
  const int64_t first_group = p.col / kGroupCols;
  const auto* scales = reinterpret_cast<const float*>(p.tile + kYmmScaleOffset);
  float* y = p.y + token * kBlockRows;
  alignas(32) int16_t x16[kGroupCols];
  __m256 acc[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    acc[v] = p.col == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(y + 8 * v);
  }
  for (int64_t g = 0; g < p.cols / kGroupCols; ++g) {
    const int8_t* code = x.code + p.col + g * kGroupCols;
    __m256 xs = _mm256_set1_ps(x.scale[first_group + g]);
    __m256i sum[kVectors];
    if constexpr (kFp8) {
      for (int i = 0; i < 32; i += 16) {
        const __m128i c = _mm_loadu_si128((const __m128i*)(code + i));
        _mm256_store_si256((__m256i*)(x16 + i), _mm256_cvtepi8_epi16(c));
      }
      group_sums_fp8(p.tile + g * kYmmFp8GroupBytes, x16, sum);
    } else {
      const int32_t offset = x.offset[first_group + g];
      group_sums_fp4_e4m3(p.tile + g * kYmmFp4GroupBytes, code, x.low + p.col + g * kGroupCols,
                          offset >> 3, sum);
      if (x.has_fine[first_group + g] != 0) {
        __m256i fine[kVectors];
        group_sums_fp4(p.tile + g * kYmmFp4GroupBytes, x.fine + p.col + g * kGroupCols, offset & 7,
                       fine);
        for (int v = 0; v < kVectors; ++v) {
          sum[v] = _mm256_add_epi32(_mm256_slli_epi32(sum[v], 3), fine[v]);
        }
        xs = _mm256_mul_ps(xs, _mm256_set1_ps(0.125f));
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256 ws = kFp8 ? _mm256_set1_ps(ue8m0_to_float(p.block->scale[first_group + g]))
                             : _mm256_loadu_ps(scales + g * kBlockRows + 8 * v);
      acc[v] = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sum[v]), ws), xs, acc[v]);
    }
  }
  const bool last = p.col + p.cols == p.block->cols;
  const __m256 unit = _mm256_set1_ps(!last ? 1.0f : kFp8 ? 0x1p-6f : 0.5f);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) _mm256_storeu_ps(y + 8 * v, _mm256_mul_ps(acc[v], unit));
}

// N tokens of int8 by two vectors of a tile of fp4, the 16 rows from `row` on: a load of weights or
// of x is for several products, and what they need stays in sixteen registers.
template <int N>
void multiply_fp4(const Int8TileProduct& p, int64_t token, int64_t row) {
  const Int8Rows x = p.x.from(token);
  const int64_t first_group = p.col / kGroupCols;
  const auto* scales = reinterpret_cast<const float*>(p.tile + kYmmScaleOffset) + row;
  float* y = p.y + token * kBlockRows + row;
  if (p.col == 0) {
    for (int n = 0; n < N; ++n) std::fill_n(y + n * kBlockRows, 16, 0.0f);
  }
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t g = 0; g < p.cols / kGroupCols; ++g, scales += kBlockRows) {
    const std::byte* w = p.tile + g * kYmmFp4GroupBytes + row * 4;
    const int8_t* code = x.code + p.col + g * kGroupCols;
    __m256i sum[N][2];
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      __m256i pairs[N][2];
#pragma GCC unroll 4
      for (int k = 4 * half; k < 4 * half + 4; ++k) {
        const __m256i w0 = load(w + k * kYmmStepBytes);
        const __m256i w1 = load(w + k * kYmmStepBytes + kVectorBytes);
#pragma GCC unroll 4
        for (int n = 0; n < N; ++n) {
          int32_t four;
          __builtin_memcpy(&four, code + n * x.code_stride + 4 * k, 4);
          const __m256i v = _mm256_set1_epi32(four);
          const __m256i p0 = _mm256_maddubs_epi16(w0, v), p1 = _mm256_maddubs_epi16(w1, v);
          pairs[n][0] = k % 4 == 0 ? p0 : _mm256_add_epi16(pairs[n][0], p0);
          pairs[n][1] = k % 4 == 0 ? p1 : _mm256_add_epi16(pairs[n][1], p1);
        }
      }
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          const __m256i s = _mm256_madd_epi16(pairs[n][v], ones);
          sum[n][v] = half == 0 ? s : _mm256_add_epi32(sum[n][v], s);
        }
      }
    }
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      const int64_t at = n * x.group_stride + first_group + g;
      const __m256i offset = _mm256_set1_epi32(x.offset[at]);
      const __m256 xs = _mm256_set1_ps(x.scale[at]);
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        float* to = y + n * kBlockRows + 8 * v;
        const __m256 f = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(sum[n][v], offset)),
                                       _mm256_loadu_ps(scales + 8 * v));
        _mm256_storeu_ps(to, _mm256_fmadd_ps(f, xs, _mm256_loadu_ps(to)));
      }
    }
  }
  if (p.col + p.cols < p.block->cols) return;
  for (int n = 0; n < N; ++n) {
    for (int64_t i = 0; i < 16; ++i) y[n * kBlockRows + i] *= 0.5f;
  }
}

void multiply_all_fp4(const Int8TileProduct& p) {
  constexpr int kTokens = 3;
  for (int64_t row = 0; row < kBlockRows; row += 16) {
    int64_t t = 0;
    for (; t + kTokens <= p.tokens; t += kTokens) multiply_fp4<kTokens>(p, t, row);
    if (p.tokens - t == 2) multiply_fp4<2>(p, t, row);
    if (p.tokens - t == 1) multiply_fp4<1>(p, t, row);
  }
}

void multiply(const Int8TileProduct& p) {
  const bool fp4 = p.block->dtype == DType::kI8;
  if (fp4 && p.x.low == nullptr) return multiply_all_fp4(p);
  for (int64_t t = 0; t < p.tokens; ++t) {
    fp4 ? multiply_token<false>(p, t) : multiply_token<true>(p, t);
  }
}

}  // namespace

const Int8Kernels& avx2_int8() {
  static const Int8Kernels kKernels = {.lanes = &avx2_lanes(),
                                       .max_direct_fp4_tokens = kMaxInt8DotTokens,
                                       .max_direct_fp8_tokens = kYmmDotTokens,
                                       .max_direct_e4m3_tokens = kYmmDotTokens,
                                       .quantize = quantize,
                                       .quantize_row = quantize_row,
                                       .dot = dot_int8_avx2,
                                       .unpack = unpack,
                                       .multiply = multiply};
  return kKernels;
}

}  // namespace fathom::kernels
