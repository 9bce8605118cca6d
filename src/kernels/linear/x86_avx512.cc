// The fast rows of `linear` with AVX-512: what surrounds the products of x86_avx512_dot.cc, and the
// tile product for many tokens (prefill).
//
// Limit of the tile product: fp32 FMA, two a cycle.  4 rows x 6 tokens take 24 FMAs and 10 loads
// per 16 columns.  Unpacking costs 4 to 8 cycles per 32 weights against one cycle per token.
#include <immintrin.h>

#include <utility>

#include "kernels/linear/lanes.h"
#include "kernels/linear/prefetch.h"
#include "kernels/linear/x86_avx512_dot.h"
#include "kernels/linear/x86_avx512_vec.h"

namespace fathom::kernels {
namespace {

constexpr int kTileRows = 4;
constexpr int kTokens = 6;
static_assert(kTileRows * kTokens + kTileRows + 1 <= 32, "accumulators live in registers");
static_assert(kBlockRows % kTileRows == 0);

// ---- x

// One group of 32 rounded to e4m3 with its scale (docs/spec/model.md 6.4).
void quantize_group(__m512& v0, __m512& v1) {
  const float s = e4m3_scale(v0, v1);
  const __m512 scale = _mm512_set1_ps(s);
  const __m512 inverse = _mm512_set1_ps(1.0f / s);
  v0 = _mm512_mul_ps(round_e4m3(_mm512_mul_ps(v0, inverse)), scale);
  v1 = _mm512_mul_ps(round_e4m3(_mm512_mul_ps(v1, inverse)), scale);
}

void widen(const Bf16* x, int64_t cols, bool quantize, float* out) {
  const int64_t whole = cols / 32 * 32;
  for (int64_t i = 0; i < whole; i += 32) {
    __m512 v0 = widen_bf16(_mm256_loadu_si256((const __m256i*)(x + i)));
    __m512 v1 = widen_bf16(_mm256_loadu_si256((const __m256i*)(x + i + 16)));
    if (quantize) quantize_group(v0, v1);
    _mm512_storeu_ps(out + i, v0);
    _mm512_storeu_ps(out + i + 16, v1);
  }
  for (int64_t i = whole; i < cols; i += 16) {
    _mm512_storeu_ps(out + i, widen_bf16(_mm256_maskz_loadu_epi16(first_lanes(cols - i), x + i)));
  }
}

// Two vectors in column order to the even ones and the odd ones.
void split(__m512& v0, __m512& v1) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  const __m512 e = _mm512_permutex2var_ps(v0, even, v1);
  v1 = _mm512_permutex2var_ps(v0, odd, v1);
  v0 = e;
}

void split_pairs(const float* x, int64_t cols, float* out) {
  for (int64_t i = 0; i < cols; i += 32) {
    __m512 v0 = _mm512_loadu_ps(x + i), v1 = _mm512_loadu_ps(x + i + 16);
    split(v0, v1);
    _mm512_storeu_ps(out + i, v0);
    _mm512_storeu_ps(out + i + 16, v1);
  }
}

void fold_scales(const float* x, const uint8_t* scale, int64_t cols, float* out) {
  for (int64_t i = 0; i < cols; i += 32) {
    // 2^8 is what unpack_e4m3 leaves out.
    const __m512 s = _mm512_set1_ps(ue8m0_to_float(scale[i / 32]) * 0x1p8f);
    _mm512_storeu_ps(out + i, _mm512_mul_ps(_mm512_loadu_ps(x + i), s));
    _mm512_storeu_ps(out + i + 16, _mm512_mul_ps(_mm512_loadu_ps(x + i + 16), s));
  }
}

// ---- tiles

// Rows are unpacked with the next tile's columns on their way.

void unpack_fp4_row(const RowBlock& b, int64_t r, int64_t col, int64_t cols, float* out) {
  const __m512 values = e2m1_table();
  const uint8_t* code = b.data + r * b.row_bytes + col / 2;
  static_assert(kTileCols / 32 == kLanes);
  alignas(64) float scale[kLanes];
  _mm512_store_ps(scale, load_scales(b.scale + r * (b.cols / 32) + col / 32, cols / 32));
  for (int64_t g = 0; g < cols / 32; ++g) {
    const __m512i byte = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)(code + 16 * g)));
    const __m512 table = _mm512_mul_ps(values, _mm512_set1_ps(scale[g]));
    _mm512_store_ps(out + 32 * g, _mm512_permutexvar_ps(byte, table));
    _mm512_store_ps(out + 32 * g + 16, _mm512_permutexvar_ps(_mm512_srli_epi32(byte, 4), table));
    if ((g & 3) == 0) prefetch(code + 16 * g + kTileCols / 2);
  }
}

void unpack_fp8_row(const RowBlock& b, int64_t r, int64_t col, int64_t cols, float* out) {
  const uint8_t* code = b.data + r * b.row_bytes + col;
  const uint8_t* scale = b.scale + col / 32;
  for (int64_t i = 0; i < cols; i += 32) {
    const __m512 s = _mm512_set1_ps(ue8m0_to_float(scale[i / 32]) * 0x1p8f);
    __m512 w0, w1;
    unpack_e4m3(code + i, w0, w1);
    _mm512_store_ps(out + i, _mm512_mul_ps(w0, s));
    _mm512_store_ps(out + i + 16, _mm512_mul_ps(w1, s));
    if ((i & 32) == 0) prefetch(code + i + kTileCols);
  }
}

void unpack_bf16_row(const RowBlock& b, int64_t r, int64_t col, int64_t cols, float* out) {
  const uint8_t* bits = b.data + r * b.row_bytes + 2 * col;
  for (int64_t i = 0; i < cols; i += 16) {
    const __m256i w = _mm256_maskz_loadu_epi16(first_lanes(cols - i), bits + 2 * i);
    _mm512_store_ps(out + i, widen_bf16(w));
    if ((i & 16) == 0) prefetch(bits + 2 * (i + kTileCols));
  }
}

void unpack(const RowBlock& b, int64_t col, int64_t cols, float* tile) {
  const int64_t padded = (b.rows + kTileRows - 1) / kTileRows * kTileRows;
  for (int64_t r = 0; r < padded; ++r) {
    float* out = tile + r * kTileCols;
    if (r >= b.rows) {
      for (int64_t i = 0; i < cols; i += 16) _mm512_store_ps(out + i, _mm512_setzero_ps());
    } else if (b.dtype == DType::kI8) {
      unpack_fp4_row(b, r, col, cols, out);
    } else if (b.dtype == DType::kF8E4M3) {
      unpack_fp8_row(b, r, col, cols, out);
    } else {
      unpack_bf16_row(b, r, col, cols, out);
    }
  }
}

// kTileRows rows of the tile times T tokens.  The folds over I keep the accumulators in registers,
// where g++ 12 would leave an array indexed by loops in memory.
template <int T, size_t... I>
void multiply_rows(const TileProduct& p, int64_t row, int64_t token, std::index_sequence<I...>) {
  const float* w = p.tile + row * kTileCols;
  const float* x[T];
  for (int t = 0; t < T; ++t) x[t] = p.x[token + t] + p.col;
  float* partial = p.partial + (token * kBlockRows + row) * kLanes;
  // I = t * kTileRows + r.
  constexpr auto at = [](size_t i) {
    return (i / kTileRows * kBlockRows + i % kTileRows) * kLanes;
  };
  __m512 acc[sizeof...(I)];
  if (p.first) {
    ((acc[I] = _mm512_setzero_ps()), ...);
  } else {
    ((acc[I] = _mm512_load_ps(partial + at(I))), ...);
  }
  // On its way meanwhile: the x of one of the tokens that come next, or of the next tile.
  const int64_t next = token + T + row / kTileRows;
  const float* ahead =
      next < p.tokens ? p.x[next] + p.col : p.x[next % p.tokens] + p.col + p.places;
  for (int64_t k = 0; k < p.places; k += kLanes) {
    _mm_prefetch(reinterpret_cast<const char*>(ahead + k), _MM_HINT_T0);
    const __m512 w0 = _mm512_load_ps(w + k);
    const __m512 w1 = _mm512_load_ps(w + kTileCols + k);
    const __m512 w2 = _mm512_load_ps(w + 2 * kTileCols + k);
    const __m512 w3 = _mm512_load_ps(w + 3 * kTileCols + k);
    const auto step = [&](auto i) __attribute__((always_inline)) {
      constexpr size_t r = i % kTileRows;
      const __m512 wr = r == 0 ? w0 : r == 1 ? w1 : r == 2 ? w2 : w3;
      acc[i] = _mm512_fmadd_ps(wr, _mm512_loadu_ps(x[i / kTileRows] + k), acc[i]);
    };
    (step(std::integral_constant<size_t, I>()), ...);
  }
  if (p.last) {
    float* y = p.y + token * kBlockRows + row;
    const auto fold = [&](auto i) __attribute__((always_inline)) {
      if constexpr (i % kTileRows == 0) {
        _mm_storeu_ps(y + i / kTileRows * kBlockRows,
                      fold_lanes(acc[i], acc[i + 1], acc[i + 2], acc[i + 3]));
      }
    };
    (fold(std::integral_constant<size_t, I>()), ...);
  } else {
    (_mm512_store_ps(partial + at(I), acc[I]), ...);
  }
}

template <int T>
void multiply_tokens(const TileProduct& p, int64_t token) {
  for (int64_t row = 0; row < p.rows; row += kTileRows) {
    multiply_rows<T>(p, row, token, std::make_index_sequence<T * kTileRows>());
  }
}

void multiply(const TileProduct& p) {
  using Multiply = void (*)(const TileProduct&, int64_t);
  static constexpr Multiply kMultiply[kTokens] = {multiply_tokens<1>, multiply_tokens<2>,
                                                  multiply_tokens<3>, multiply_tokens<4>,
                                                  multiply_tokens<5>, multiply_tokens<6>};
  // Equal parts: one or two tokens take nearly as long as six.
  const int64_t parts = (p.tokens + kTokens - 1) / kTokens;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t token = p.tokens * part / parts;
    kMultiply[p.tokens * (part + 1) / parts - token - 1](p, token);
  }
}

// ---- y

// The bf16 of v in the low half of each element.
__m512i round_bits(__m512 v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i lsb = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(lsb, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  return _mm512_srli_epi32(_mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000)), 16);
}

__m512 round_bf16(__m512 v) { return _mm512_castsi512_ps(_mm512_slli_epi32(round_bits(v), 16)); }

void round_row(const float* y, int64_t n, Bf16* out) {
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    const __m512i bits = round_bits(_mm512_maskz_loadu_ps(mask, y + i));
    _mm256_mask_storeu_epi16(out + i, mask, _mm512_cvtepi32_epi16(bits));
  }
}

void sum_rows(const Bf16* const* rows, int64_t num_rows, int64_t n, Bf16* out) {
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask = first_lanes(n - i);
    __m512 sum = _mm512_setzero_ps();
    for (int64_t r = 0; r < num_rows; ++r) {
      sum = _mm512_add_ps(sum, widen_bf16(_mm256_maskz_loadu_epi16(mask, rows[r] + i)));
    }
    _mm256_mask_storeu_epi16(out + i, mask, _mm512_cvtepi32_epi16(round_bits(sum)));
  }
}

// exp(v) within 2 units in the last place on [-87, 87], clamped outside; multiplications and
// additions only, so that every ISA has the same bits.  The polynomial is that of Cephes (expf.c).
__m512 exp_clamped(__m512 v) {
  v = _mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(-87.0f)), _mm512_set1_ps(87.0f));
  const __m512 shift = _mm512_set1_ps(0x1.8p23f);
  const __m512 shifted = _mm512_add_ps(_mm512_mul_ps(v, _mm512_set1_ps(1.44269504f)), shift);
  const __m512 n = _mm512_sub_ps(shifted, shift);
  __m512 r = _mm512_sub_ps(v, _mm512_mul_ps(n, _mm512_set1_ps(0.693359375f)));
  r = _mm512_sub_ps(r, _mm512_mul_ps(n, _mm512_set1_ps(-2.12194440e-4f)));
  __m512 p = _mm512_set1_ps(kExpPolynomial[0]);
  for (int i = 1; i < 6; ++i) {
    p = _mm512_add_ps(_mm512_mul_ps(p, r), _mm512_set1_ps(kExpPolynomial[i]));
  }
  p = _mm512_add_ps(_mm512_add_ps(_mm512_mul_ps(_mm512_mul_ps(p, r), r), r), _mm512_set1_ps(1.0f));
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), exponent));
}

__m512 gate_vector(const GateBlock& b, int i) {
  __m512 g = round_bf16(_mm512_loadu_ps(b.g + i));
  __m512 a = round_bf16(_mm512_loadu_ps(b.a + i));
  if (b.limit > 0) {
    const __m512 limit = _mm512_set1_ps(b.limit);
    a = _mm512_min_ps(_mm512_max_ps(a, _mm512_set1_ps(-b.limit)), limit);
    g = _mm512_min_ps(g, limit);
  }
  const __m512 one = _mm512_set1_ps(1.0f);
  const __m512 e = exp_clamped(_mm512_sub_ps(_mm512_setzero_ps(), g));
  const __m512 silu = _mm512_mul_ps(g, _mm512_div_ps(one, _mm512_add_ps(one, e)));
  __m512 v = _mm512_mul_ps(silu, a);
  if (b.weight != nullptr) v = _mm512_mul_ps(v, _mm512_set1_ps(*b.weight));
  return round_bf16(v);
}

void gate(const GateBlock& b) {
  __m512 v0 = gate_vector(b, 0), v1 = gate_vector(b, 16);
  if (b.quantize) quantize_group(v0, v1);
  _mm512_storeu_ps(b.h, v0);
  _mm512_storeu_ps(b.h + 16, v1);
}

}  // namespace

const LaneKernels& avx512_lanes() {
  static constexpr LaneKernels kLaneKernels = {.dot_tokens = kAvx512DotTokens,
                                               .dot_bf16_tokens = kAvx512DotBf16Tokens,
                                               .unfolded_tokens = kAvx512UnfoldedTokens,
                                               .max_direct_tokens = 8,
                                               .max_direct_bf16_tokens = 12,
                                               .widen = widen,
                                               .split_pairs = split_pairs,
                                               .fold_scales = fold_scales,
                                               .dot = dot_avx512,
                                               .unpack = unpack,
                                               .multiply = multiply,
                                               .gate = gate,
                                               .round_row = round_row,
                                               .sum_rows = sum_rows};
  return kLaneKernels;
}

}  // namespace fathom::kernels
