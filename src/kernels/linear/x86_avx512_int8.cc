// The integer rows of `linear` with AVX-512 VNNI: rounding of x, and the tile product for 9 tokens
// and more.
//
// Limit of the tile product: vpdpbusd, two a cycle.  A group of 32 columns by 32 rows takes a token
// 16 of them a plane (fp4 one, fp8 two), and 3 operations a vector of 16 rows to go on in fp32: at
// most 0.73 (fp4) or 0.84 (fp8, its scale folded into that of x) of the units' peak.
#include "kernels/linear/x86_avx512_int8.h"

#include <immintrin.h>

#include <algorithm>
#include <utility>

#include "kernels/linear/x86_avx512_vec.h"

namespace fathom::kernels {
namespace {

constexpr int kTokens = 6;
constexpr int kVectors = kBlockRows / 16;
static_assert(2 * kTokens * kVectors + kVectors + 2 <= 32, "accumulators live in registers");
constexpr int64_t kTileGroups = kInt8TileCols / kGroupCols;
static_assert(kTileGroups % 16 == 0);  // scales of a tile are read by vectors

// ---- x

// Codes of a group from its two vectors.
void quantize_vectors(__m512 v0, __m512 v1, bool fp4, int8_t* code, float* scale, int32_t* offset) {
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
  __m128i b0 = _mm512_cvtepi32_epi8(c0), b1 = _mm512_cvtepi32_epi8(c1);
  if (fp4) {
    const __m128i even = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m128i p0 = _mm_shuffle_epi8(b0, even), p1 = _mm_shuffle_epi8(b1, even);
    b0 = _mm_unpacklo_epi64(p0, p1);
    b1 = _mm_unpackhi_epi64(p0, p1);
  }
  _mm_storeu_si128((__m128i*)code, b0);
  _mm_storeu_si128((__m128i*)(code + 16), b1);
  *scale = a / 127.0f;
  *offset = sum * (fp4 ? -12 : -128);
}

// ---- tiles

// Dword j of each of 16 vectors, for all j: rows become columns.
void transpose(__m512i (&v)[16]) {
  __m512i a[16], b[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  // b[4 q + c] has dwords c, c + 4, c + 8, c + 12 of rows 4 q .. 4 q + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i p = _mm512_shuffle_i32x4(b[c], b[4 + c], 0x88);
    const __m512i q = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0x88);
    const __m512i r = _mm512_shuffle_i32x4(b[c], b[4 + c], 0xdd);
    const __m512i s = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0xdd);
    v[c] = _mm512_shuffle_i32x4(p, q, 0x88);
    v[4 + c] = _mm512_shuffle_i32x4(r, s, 0x88);
    v[8 + c] = _mm512_shuffle_i32x4(p, q, 0xdd);
    v[12 + c] = _mm512_shuffle_i32x4(r, s, 0xdd);
  }
}

// 64 bytes at `at` of rows [row, row + 16) of the block, fewer at a row's end; rows past the
// block's last repeat it.
void load_rows(const RowBlock& b, int64_t row, int64_t at, __mmask64 mask, __m512i (&v)[16]) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    const int64_t r = std::min(row + i, b.rows - 1);
    v[i] = _mm512_maskz_loadu_epi8(mask, b.data + r * b.row_bytes + at);
  }
}

__mmask64 first_bytes(int64_t n) { return n >= 64 ? ~__mmask64{0} : (__mmask64{1} << n) - 1; }

// Scales of up to 4 groups of 16 rows, from group `group` on.
void unpack_scales(const RowBlock& b, int64_t row, int64_t group, int64_t groups, float* out) {
  const int64_t stride = b.cols / kGroupCols;
  alignas(64) uint32_t bytes[16];
  for (int i = 0; i < 16; ++i) {
    const uint8_t* s = b.scale + std::min(row + i, b.rows - 1) * stride + group;
    uint32_t word = 0;
    if (groups == 4) {
      __builtin_memcpy(&word, s, 4);
    } else {
      for (int64_t g = 0; g < groups; ++g) word |= uint32_t{s[g]} << (8 * g);
    }
    bytes[i] = word;
  }
  const __m512i words = _mm512_load_si512(bytes);
  for (int g = 0; g < groups; ++g) {
    _mm512_store_ps(out + g * kBlockRows, scale_of_byte(words, g));
  }
}

void unpack_fp4(const RowBlock& b, int64_t col, int64_t cols, int bias, std::byte* tile) {
  const __m512i table = e2m1_bytes(bias);
  auto* scales = reinterpret_cast<float*>(tile + kScaleOffset);
  for (int64_t i = 0; i < cols; i += 128) {
    const int64_t groups = std::min<int64_t>(4, (cols - i) / kGroupCols);
    for (int64_t row = 0; row < kBlockRows; row += 16) {
      __m512i v[16];
      load_rows(b, row, (col + i) / 2, first_bytes(16 * groups), v);
      transpose(v);
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) {
        if (j / 4 >= groups) break;
        std::byte* out = tile + (i / kGroupCols + j / 4) * kPlaneBytes + j % 4 * 128 + row * 4;
        _mm512_store_si512(out, _mm512_permutexvar_epi8(v[j], table));
        _mm512_store_si512(out + 4 * 128,
                           _mm512_permutexvar_epi8(_mm512_srli_epi16(v[j], 4), table));
      }
      unpack_scales(b, row, (col + i) / kGroupCols, groups, scales + i + row);
    }
  }
}

// The high and the low byte of 2^15 + units, or of units if `is_signed`.
template <bool is_signed>
void e4m3_planes(__m512i w, const E4m3Bytes& table, __m512i& high, __m512i& low) {
  const __m512i base = _mm512_set1_epi8(is_signed ? 0 : char(0x80));
  const __mmask64 big = _mm512_test_epi8_mask(w, _mm512_set1_epi8(0x40));
  const __mmask64 negative = _mm512_movepi8_mask(w);
  low = _mm512_permutexvar_epi8(w, table.low);
  low = _mm512_mask_permutexvar_epi8(low, big, w, table.low_big);
  high = _mm512_mask_permutexvar_epi8(base, big, w, table.high_big);
  // Minus (high, low) in two's complement: the low byte's borrow.
  const __mmask64 borrow = _mm512_mask_test_epi8_mask(negative, low, low);
  low = _mm512_mask_sub_epi8(low, negative, _mm512_setzero_si512(), low);
  high = _mm512_mask_sub_epi8(high, negative, _mm512_setzero_si512(), high);
  high = _mm512_mask_add_epi8(high, borrow, high, _mm512_set1_epi8(-1));
}

template <bool is_signed>
void unpack_fp8(const RowBlock& b, int64_t col, int64_t cols, std::byte* tile) {
  E4m3Bytes table = e4m3_bytes();
  // The table's big half counts from 2^15 too.
  if (!is_signed) table.high_big = _mm512_xor_si512(table.high_big, _mm512_set1_epi8(char(0x80)));
  for (int64_t i = 0; i < cols; i += 64) {
    const int64_t groups = std::min<int64_t>(2, (cols - i) / kGroupCols);
    for (int64_t row = 0; row < kBlockRows; row += 16) {
      __m512i v[16];
      load_rows(b, row, col + i, first_bytes(32 * groups), v);
      transpose(v);
#pragma GCC unroll 16
      for (int j = 0; j < 16; ++j) {
        if (j / 8 >= groups) break;
        std::byte* out = tile + (i / kGroupCols + j / 8) * 2 * kPlaneBytes + j % 8 * 128 + row * 4;
        __m512i high, low;
        e4m3_planes<is_signed>(v[j], table, high, low);
        _mm512_store_si512(out, high);
        _mm512_store_si512(out + kPlaneBytes, low);
      }
    }
  }
}

// ---- products

// T tokens by the tile's rows.  The folds over I keep the accumulators in registers, where g++ 12
// would leave an array indexed by loops in memory.
template <bool kFp8, int T, size_t... I>
void multiply_tokens(const Int8TileProduct& p, int64_t token, std::index_sequence<I...>) {
  const Int8Rows x = p.x.from(token);
  const int64_t first_group = p.col / kGroupCols, groups = p.cols / kGroupCols;
  const bool last = p.col + p.cols == p.block->cols;
  float* y = p.y + token * kBlockRows;
  const auto* scales = reinterpret_cast<const float*>(p.tile + kScaleOffset);
  // fp8: the block's scales go into those of x.
  alignas(64) float folded[T][kTileGroups];
  if constexpr (kFp8) {
    for (int64_t g = 0; g < groups; g += 16) {
      const __m512 s = load_scales(p.block->scale + first_group + g, groups - g);
      for (int t = 0; t < T; ++t) {
        const float* xs = x.scale + t * x.group_stride + first_group + g;
        _mm512_store_ps(folded[t] + g, _mm512_mul_ps(s, _mm512_loadu_ps(xs)));
      }
    }
  }
  // I = t * kVectors + v.
  __m512 acc[sizeof...(I)];
  if (p.col == 0) {
    ((acc[I] = _mm512_setzero_ps()), ...);
  } else {
    ((acc[I] = _mm512_load_ps(y + 16 * I)), ...);
  }
  const int64_t lines_a_group = kFp8 ? kBlockRows / 2 : kBlockRows / 4;
  for (int64_t g = 0; g < groups; ++g) {
    if (token == 0) {  // a share of the stored bytes of the next tile
      const int64_t line = g * lines_a_group;
      for (int64_t i = line; i < line + lines_a_group; ++i) {
        _mm_prefetch(reinterpret_cast<const char*>(p.ahead + i % kBlockRows * p.ahead_stride +
                                                   i / kBlockRows * 64),
                     _MM_HINT_T0);
      }
    }
    const std::byte* w = p.tile + g * (kFp8 ? 2 : 1) * kPlaneBytes;
    const int8_t* code = x.code + p.col + g * kGroupCols;
    const int32_t* offset = x.offset + first_group + g;
    __m512i sum[sizeof...(I)];
    ((sum[I] = _mm512_set1_epi32(offset[int64_t{I / kVectors} * x.group_stride])), ...);
    const auto plane = [&](const std::byte* rows) __attribute__((always_inline)) {
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        const __m512i w0 = _mm512_load_si512(rows + k * 128);
        const __m512i w1 = _mm512_load_si512(rows + k * 128 + 64);
        const auto token_step = [&](auto t) __attribute__((always_inline)) {
          int32_t four;
          __builtin_memcpy(&four, code + int64_t{t} * x.code_stride + 4 * k, 4);
          const __m512i xt = _mm512_set1_epi32(four);
          sum[2 * t] = _mm512_dpbusd_epi32(sum[2 * t], w0, xt);
          sum[2 * t + 1] = _mm512_dpbusd_epi32(sum[2 * t + 1], w1, xt);
        };
        const auto step = [&](auto i) __attribute__((always_inline)) {
          if constexpr (i % kVectors == 0) {
            token_step(std::integral_constant<size_t, i / kVectors>());
          }
        };
        (step(std::integral_constant<size_t, I>()), ...);
      }
    };
    plane(w);
    if constexpr (kFp8) {
      ((sum[I] = _mm512_slli_epi32(sum[I], 8)), ...);
      plane(w + kPlaneBytes);
    }
    const auto finish = [&](auto i) __attribute__((always_inline)) {
      constexpr size_t t = i / kVectors, v = i % kVectors;
      __m512 f = _mm512_cvtepi32_ps(sum[i]);
      if constexpr (kFp8) {
        acc[i] = _mm512_fmadd_ps(f, _mm512_set1_ps(folded[t][g]), acc[i]);
      } else {
        f = _mm512_mul_ps(f, _mm512_load_ps(scales + g * kBlockRows + 16 * v));
        const float xs = x.scale[int64_t{t} * x.group_stride + first_group + g];
        acc[i] = _mm512_fmadd_ps(f, _mm512_set1_ps(xs), acc[i]);
      }
    };
    (finish(std::integral_constant<size_t, I>()), ...);
  }
  const __m512 unit = _mm512_set1_ps(!last ? 1.0f : kFp8 ? 0x1p-6f : 0.5f);
  (_mm512_store_ps(y + 16 * I, _mm512_mul_ps(acc[I], unit)), ...);
}

template <bool kFp8, int T>
void multiply_some(const Int8TileProduct& p, int64_t token) {
  multiply_tokens<kFp8, T>(p, token, std::make_index_sequence<T * kVectors>());
}

template <bool kFp8>
void multiply_all(const Int8TileProduct& p) {
  const int64_t parts = (p.tokens + kTokens - 1) / kTokens;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t token = p.tokens * part / parts;
    switch (p.tokens * (part + 1) / parts - token) {
      case 1:
        multiply_some<kFp8, 1>(p, token);
        break;
      case 2:
        multiply_some<kFp8, 2>(p, token);
        break;
      case 3:
        multiply_some<kFp8, 3>(p, token);
        break;
      case 4:
        multiply_some<kFp8, 4>(p, token);
        break;
      case 5:
        multiply_some<kFp8, 5>(p, token);
        break;
      default:
        multiply_some<kFp8, 6>(p, token);
    }
  }
}

void multiply(const Int8TileProduct& p) {
  if (p.block->dtype == DType::kI8) {
    multiply_all<false>(p);
  } else {
    multiply_all<true>(p);
  }
}

}  // namespace

void quantize_avx512(const float* x, bool fp4, int8_t* code, float* scale, int32_t* offset) {
  quantize_vectors(_mm512_loadu_ps(x), _mm512_loadu_ps(x + 16), fp4, code, scale, offset);
}

void quantize_row_avx512(const Bf16* x, int64_t cols, bool fp4, const Int8Rows& out) {
  for (int64_t g = 0; g < cols / kGroupCols; ++g) {
    const Bf16* v = x + g * kGroupCols;
    quantize_vectors(widen_bf16(_mm256_loadu_si256((const __m256i*)v)),
                     widen_bf16(_mm256_loadu_si256((const __m256i*)(v + 16))), fp4,
                     out.code + g * kGroupCols, out.scale + g, out.offset + g);
  }
  for (int64_t i = cols; i % 128 != 0; i += 32) {
    _mm256_storeu_si256((__m256i*)(out.code + i), _mm256_setzero_si256());
  }
}

void unpack_int8_avx512(const RowBlock& block, int64_t col, int64_t cols, std::byte* tile) {
  if (block.dtype == DType::kI8) {
    unpack_fp4(block, col, cols, 12, tile);
  } else {
    unpack_fp8<false>(block, col, cols, tile);
  }
}

void unpack_int8_amx(const RowBlock& block, int64_t col, int64_t cols, std::byte* tile) {
  if (block.dtype == DType::kI8) {
    unpack_fp4(block, col, cols, 0, tile);
  } else {
    unpack_fp8<true>(block, col, cols, tile);
  }
}

const Int8Kernels& avx512_int8() {
  static const Int8Kernels kKernels = {.lanes = &avx512_lanes(),
                                       .max_direct_tokens = kMaxInt8DotTokens,
                                       .quantize = quantize_avx512,
                                       .quantize_row = quantize_row_avx512,
                                       .dot = dot_int8_avx512,
                                       .unpack = unpack_int8_avx512,
                                       .multiply = multiply};
  return kKernels;
}

}  // namespace fathom::kernels
