// The integer rows of `linear` with AVX-512 VNNI: the tile product for 9 tokens and more, of e4m3
// x for 4.
//
// Limit of the tile product: vpdpbusd, two a cycle.  A group of 32 columns by 32 rows takes a token
// 16 of them a plane (fp4 one, fp8 two), and 2 (fp4) or 3 (fp8, its scale folded into that of x)
// operations a vector of 16 rows to go on in fp32: at most 0.80 or 0.84 of the units' peak.  e4m3
// x takes two planes, too, or three, and 4 operations: 0.80.
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
static_assert(kTileGroups == 16);  // scales of a tile are read by vectors, flags are one mask

// ---- tiles

// Rows [row, row + 16) of the block; rows past its last repeat it.
struct SixteenRows {
  const uint8_t* at[16];

  SixteenRows(const RowBlock& b, int64_t row) {
    for (int i = 0; i < 16; ++i) at[i] = b.data + std::min(row + i, b.rows - 1) * b.row_bytes;
  }
};

// 16 bytes at `byte` of 16 rows to v[k]: dword k of each row.  The loads put rows 4 apart side by
// side, so that what is left of the transposition stays in the 128-bit lanes.
inline __attribute__((always_inline)) void transpose_piece(const SixteenRows& rows, int64_t byte,
                                                           __m512i (&v)[4]) {
  __m512i m[4];
  const auto piece = [&](int i) __attribute__((always_inline)) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows.at[i] + byte));
  };
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    m[r] = _mm512_broadcast_i32x4(piece(r));
    m[r] = _mm512_mask_broadcast_i32x4(m[r], 0x00f0, piece(r + 4));
    m[r] = _mm512_mask_broadcast_i32x4(m[r], 0x0f00, piece(r + 8));
    m[r] = _mm512_mask_broadcast_i32x4(m[r], 0xf000, piece(r + 12));
  }
  const __m512i a = _mm512_unpacklo_epi32(m[0], m[1]), b = _mm512_unpackhi_epi32(m[0], m[1]);
  const __m512i c = _mm512_unpacklo_epi32(m[2], m[3]), d = _mm512_unpackhi_epi32(m[2], m[3]);
  v[0] = _mm512_unpacklo_epi64(a, c);
  v[1] = _mm512_unpackhi_epi64(a, c);
  v[2] = _mm512_unpacklo_epi64(b, d);
  v[3] = _mm512_unpackhi_epi64(b, d);
}

// Scales of up to 4 groups of 16 rows, from group `group` on.
void unpack_scales(const RowBlock& b, int64_t row, int64_t group, int64_t groups, float* out) {
  const int64_t stride = b.cols / kGroupCols;
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto last = static_cast<int32_t>(std::max<int64_t>(0, b.rows - 1 - row));
  const uint8_t* first = b.scale + std::min(row, b.rows - 1) * stride + group;
  const __m512i at = _mm512_mullo_epi32(_mm512_min_epi32(lane, _mm512_set1_epi32(last)),
                                        _mm512_set1_epi32(static_cast<int32_t>(stride)));
  const __m512i words =
      groups == 4 ? _mm512_i32gather_epi32(at, first, 1) : few_scales(first, at, groups);
  for (int g = 0; g < groups; ++g) {
    _mm512_store_ps(out + g * kBlockRows, scale_of_byte(words, g));
  }
}

void unpack_fp4(const RowBlock& b, int64_t col, int64_t cols, int bias, std::byte* tile) {
  const __m512i table = e2m1_bytes(bias);
  auto* scales = reinterpret_cast<float*>(tile + kScaleOffset);
  for (int64_t row = 0; row < kBlockRows; row += 16) {
    const SixteenRows rows(b, row);
    for (int64_t g = 0; g < cols / kGroupCols; ++g) {
      __m512i v[4];
      transpose_piece(rows, col / 2 + g * 16, v);
      std::byte* out = tile + g * kPlaneBytes + row * 4;
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        _mm512_store_si512(out + k * 128, _mm512_permutexvar_epi8(v[k], table));
        _mm512_store_si512(out + (4 + k) * 128,
                           _mm512_permutexvar_epi8(_mm512_srli_epi16(v[k], 4), table));
      }
    }
    for (int64_t i = 0; i < cols; i += 128) {
      const int64_t groups = std::min<int64_t>(4, (cols - i) / kGroupCols);
      unpack_scales(b, row, (col + i) / kGroupCols, groups, scales + i + row);
    }
  }
}

// The high and the low byte of 2^15 + units, or of units if `is_signed`.
template <bool is_signed>
void e4m3_planes(__m512i w, const E4m3Bytes& table, __m512i& high, __m512i& low) {
  const __m512i base = _mm512_set1_epi8(is_signed ? 0 : char(0x80));
  // Bit 6, by way of bit 7: a test would take the shuffles' port.
  const __mmask64 big = _mm512_movepi8_mask(_mm512_add_epi8(w, w));
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
  for (int64_t row = 0; row < kBlockRows; row += 16) {
    const SixteenRows rows(b, row);
    for (int64_t i = 0; i < cols; i += 16) {
      __m512i v[4];
      transpose_piece(rows, col + i, v);
      std::byte* out = tile + i / kGroupCols * 2 * kPlaneBytes + i % kGroupCols * 32 + row * 4;
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        __m512i high, low;
        e4m3_planes<is_signed>(v[k], table, high, low);
        _mm512_store_si512(out + k * 128, high);
        _mm512_store_si512(out + k * 128 + kPlaneBytes, low);
      }
    }
  }
}

// ---- products

// Weights and x of a product: bytes of each, and the groups' scales.
enum class Operands {
  kFp4,     // a byte of both
  kFp8,     // weights in two bytes
  kFp4E4m3  // x in two bytes, or three
};

// What a call of multiply_tokens makes of the scales and offsets of its tokens.
template <Operands kOperands, int T>
struct TokenGroups {
  static constexpr bool kFp8 = kOperands == Operands::kFp8;
  alignas(64) float scale[T][kTileGroups];    // fp8: with the block's
  alignas(64) int32_t start[T][kTileGroups];  // of the sums
  // kFp4E4m3: what the sums get when they are shifted by 8 and by 3, in the highest bits, and the
  // groups in which a token has fine codes.
  static constexpr int kE4m3 = kOperands == Operands::kFp4E4m3 ? T : 1;
  alignas(64) int32_t rest[kE4m3][kTileGroups];
  alignas(64) int32_t fine_rest[kE4m3][kTileGroups];
  uint32_t fine_groups = 0;

  TokenGroups(const Int8TileProduct& p, const Int8Rows& x, int64_t first_group, int64_t groups) {
    for (int64_t g = 0; g < groups; g += 16) {
      const __mmask16 mask = first_lanes(groups - g);
      const __m512 s =
          kFp8 ? load_scales(p.block->scale + first_group + g, groups - g) : _mm512_set1_ps(1.0f);
      const __m512i magic = _mm512_set1_epi32(kOperands == Operands::kFp4 ? kMagicBits : 0);
      for (int t = 0; t < T; ++t) {
        const int64_t at = t * x.group_stride + first_group + g;
        const __m512 xs = _mm512_maskz_loadu_ps(mask, x.scale + at);
        _mm512_store_ps(scale[t] + g, kFp8 ? _mm512_mul_ps(s, xs) : xs);
        const __m512i offset = _mm512_maskz_loadu_epi32(mask, x.offset + at);
        if constexpr (kOperands == Operands::kFp4E4m3) {
          _mm512_store_si512(start[t] + g, _mm512_srai_epi32(offset, 11));
          _mm512_store_si512(rest[t] + g, _mm512_slli_epi32(_mm512_srai_epi32(offset, 3), 24));
          _mm512_store_si512(fine_rest[t] + g, _mm512_slli_epi32(offset, 29));
          const __m128i has = _mm_maskz_loadu_epi8(mask, x.has_fine + at);
          fine_groups |= uint32_t{_mm_test_epi8_mask(has, has)} << g;
        } else {
          _mm512_store_si512(start[t] + g, _mm512_add_epi32(offset, magic));
        }
      }
    }
  }
};

// sum[t * kVectors + v] += a plane of a group's weights by the codes of T tokens.  The folds over I
// = t * kVectors + v keep sums in registers, where g++ 12 would leave an array indexed by loops in
// memory.
template <size_t... I>
inline __attribute__((always_inline)) void add_plane(const std::byte* rows, const int8_t* code,
                                                     int64_t code_stride,
                                                     __m512i (&sum)[sizeof...(I)],
                                                     std::index_sequence<I...>) {
  // Or the compiler keeps the x of one plane for the next: in memory, for want of registers.
  // Volatile, since it takes two such statements on the same pointer for one.
  __asm__ volatile("" : "+r"(code));
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) {
    const __m512i w0 = _mm512_load_si512(rows + k * 128);
    const __m512i w1 = _mm512_load_si512(rows + k * 128 + 64);
    const auto token_step = [&](auto t) __attribute__((always_inline)) {
      int32_t four;
      __builtin_memcpy(&four, code + int64_t{t} * code_stride + 4 * k, 4);
      const __m512i xt = _mm512_set1_epi32(four);
      sum[2 * t] = _mm512_dpbusd_epi32(sum[2 * t], w0, xt);
      sum[2 * t + 1] = _mm512_dpbusd_epi32(sum[2 * t + 1], w1, xt);
    };
    const auto step = [&](auto i) __attribute__((always_inline)) {
      if constexpr (i % kVectors == 0) token_step(std::integral_constant<size_t, i / kVectors>());
    };
    (step(std::integral_constant<size_t, I>()), ...);
  }
}

// sum = the sums of group g of the tile.  Returns their unit.
template <Operands kOperands, int T, size_t... I>
inline __attribute__((always_inline)) float sum_group(const Int8TileProduct& p, const Int8Rows& x,
                                                      const TokenGroups<kOperands, T>& tokens,
                                                      int64_t g, __m512i (&sum)[sizeof...(I)],
                                                      std::index_sequence<I...> all) {
  constexpr bool kFp8 = kOperands == Operands::kFp8;
  const std::byte* w = p.tile + g * (kFp8 ? 2 : 1) * kPlaneBytes;
  const int64_t place = p.col + g * kGroupCols;
  ((sum[I] = _mm512_set1_epi32(tokens.start[I / kVectors][g])), ...);
  add_plane(w, x.code + place, x.code_stride, sum, all);
  if constexpr (kFp8) {
    ((sum[I] = _mm512_slli_epi32(sum[I], 8)), ...);
    add_plane(w + kPlaneBytes, x.code + place, x.code_stride, sum, all);
  } else if constexpr (kOperands == Operands::kFp4E4m3) {
    // What bits are shifted in are those of the offset.
    const auto shift = [&](const auto& rest, auto bits) __attribute__((always_inline)) {
      ((sum[I] = _mm512_shldi_epi32(sum[I], _mm512_set1_epi32(rest[I / kVectors][g]), bits)), ...);
    };
    shift(tokens.rest, std::integral_constant<int, 8>());
    add_plane(w, x.low + place, x.code_stride, sum, all);
    if ((tokens.fine_groups >> g & 1) != 0) {
      shift(tokens.fine_rest, std::integral_constant<int, 3>());
      add_plane(w, x.fine + place, x.code_stride, sum, all);
      return 0.125f;
    }
  }
  return 1.0f;
}

// acc goes on with the sums of group g.
template <Operands kOperands, int T, size_t... I>
inline __attribute__((always_inline)) void finish_group(
    const Int8TileProduct& p, const TokenGroups<kOperands, T>& tokens, int64_t g, float unit,
    const __m512i (&sum)[sizeof...(I)], __m512 (&acc)[sizeof...(I)], std::index_sequence<I...>) {
  const auto* scales = reinterpret_cast<const float*>(p.tile + kScaleOffset) + g * kBlockRows;
  __m512 ws[kVectors] = {_mm512_load_ps(scales), _mm512_load_ps(scales + 16)};
  if constexpr (kOperands == Operands::kFp4E4m3) {
    for (__m512& s : ws) s = _mm512_mul_ps(s, _mm512_set1_ps(unit));
  }
  const auto finish = [&](auto i) __attribute__((always_inline)) {
    constexpr size_t t = i / kVectors, v = i % kVectors;
    __m512 f;
    if constexpr (kOperands == Operands::kFp8) {
      f = _mm512_cvtepi32_ps(sum[i]);
    } else if constexpr (kOperands == Operands::kFp4E4m3) {
      f = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[i]), ws[v]);
    } else {
      const __m512 minus = _mm512_mul_ps(ws[v], _mm512_set1_ps(-kMagic));
      f = _mm512_fmadd_ps(_mm512_castsi512_ps(sum[i]), ws[v], minus);
    }
    acc[i] = _mm512_fmadd_ps(f, _mm512_set1_ps(tokens.scale[t][g]), acc[i]);
  };
  (finish(std::integral_constant<size_t, I>()), ...);
}

// A share of the stored bytes of the next tile.  To L2: L1 has too few fetches under way.
inline __attribute__((always_inline)) void prefetch_ahead(const Int8TileProduct& p, int64_t g,
                                                          int64_t lines_a_group) {
  for (int64_t i = g * lines_a_group; i < (g + 1) * lines_a_group; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(p.ahead + i % kBlockRows * p.ahead_stride +
                                               i / kBlockRows * 64),
                 _MM_HINT_T1);
  }
}

// T tokens by the tile's rows.
template <Operands kOperands, int T, size_t... I>
void multiply_tokens(const Int8TileProduct& p, int64_t token, std::index_sequence<I...> all) {
  constexpr bool kFp8 = kOperands == Operands::kFp8;
  const Int8Rows x = p.x.from(token);
  const int64_t groups = p.cols / kGroupCols;
  float* y = p.y + token * kBlockRows;
  const TokenGroups<kOperands, T> tokens(p, x, p.col / kGroupCols, groups);
  __m512 acc[sizeof...(I)];
  ((acc[I] = p.col == 0 ? _mm512_setzero_ps() : _mm512_load_ps(y + 16 * I)), ...);
  for (int64_t g = 0; g < groups; ++g) {
    if (token == 0) prefetch_ahead(p, g, kFp8 ? kBlockRows / 2 : kBlockRows / 4);
    __m512i sum[sizeof...(I)];
    const float unit = sum_group(p, x, tokens, g, sum, all);
    finish_group(p, tokens, g, unit, sum, acc, all);
  }
  const bool last = p.col + p.cols == p.block->cols;
  const __m512 unit = _mm512_set1_ps(!last ? 1.0f : kFp8 ? 0x1p-6f : 0.5f);
  (_mm512_store_ps(y + 16 * I, _mm512_mul_ps(acc[I], unit)), ...);
}

template <Operands kOperands, int T>
void multiply_some(const Int8TileProduct& p, int64_t token) {
  multiply_tokens<kOperands, T>(p, token, std::make_index_sequence<T * kVectors>());
}

template <Operands kO>
void multiply_all(const Int8TileProduct& p) {
  using Multiply = void (*)(const Int8TileProduct&, int64_t);
  static constexpr Multiply kMultiply[kTokens] = {multiply_some<kO, 1>, multiply_some<kO, 2>,
                                                  multiply_some<kO, 3>, multiply_some<kO, 4>,
                                                  multiply_some<kO, 5>, multiply_some<kO, 6>};
  const int64_t parts = (p.tokens + kTokens - 1) / kTokens;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t token = p.tokens * part / parts;
    kMultiply[p.tokens * (part + 1) / parts - token - 1](p, token);
  }
}

void multiply(const Int8TileProduct& p) {
  if (p.block->dtype != DType::kI8) return multiply_all<Operands::kFp8>(p);
  if (p.x.low != nullptr) return multiply_all<Operands::kFp4E4m3>(p);
  multiply_all<Operands::kFp4>(p);
}

}  // namespace

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
                                       .max_direct_fp4_tokens = kMaxInt8DotTokens,
                                       .max_direct_fp8_tokens = kMaxInt8DotTokens,
                                       .max_direct_e4m3_tokens = kAvx512RowTokens,
                                       .quantize = quantize_avx512,
                                       .quantize_row = quantize_row_avx512,
                                       .dot = dot_int8_avx512,
                                       .unpack = unpack_int8_avx512,
                                       .multiply = multiply};
  return kKernels;
}

}  // namespace fathom::kernels
