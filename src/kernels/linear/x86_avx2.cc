// The fast rows of `linear` with AVX2: what surrounds the products of x86_avx2_dot.cc, and the tile
// product for many tokens (prefill).
//
// Limit of the tile product: fp32 FMA, two a cycle.  16 registers hold 4 rows x 3 tokens of 8
// lanes, so lanes 0-7 and 8-15 are two passes: 12 FMAs and 7 loads per 8 columns.
#include <immintrin.h>

#include <utility>

#include "kernels/linear/lanes.h"
#include "kernels/linear/x86_avx2_dot.h"
#include "kernels/linear/x86_avx2_vec.h"

namespace fathom::kernels {
namespace {

constexpr int kTileRows = 4;
constexpr int kTokens = 3;
constexpr int kHalf = kLanes / 2;
static_assert(kTileRows * kTokens + kTokens + 1 <= 16, "accumulators live in registers");
static_assert(kBlockRows % kTileRows == 0);

// ---- x

// One group of 32 in v[4], rounded to e4m3 with its scale (docs/spec/model.md 6.4).
void quantize_group(__m256* v) {
  const float s = e4m3_scale(v);
  const __m256 scale = _mm256_set1_ps(s);
  const __m256 inverse = _mm256_set1_ps(1.0f / s);
  for (int i = 0; i < 4; ++i) v[i] = _mm256_mul_ps(round_e4m3(_mm256_mul_ps(v[i], inverse)), scale);
}

void widen(const Bf16* x, int64_t cols, bool quantize, float* out) {
  const int64_t whole = cols / 32 * 32;
  for (int64_t i = 0; i < whole; i += 32) {
    __m256 v[4];
    for (int j = 0; j < 4; ++j) v[j] = widen_bf16((const uint8_t*)(x + i + 8 * j));
    if (quantize) quantize_group(v);
    for (int j = 0; j < 4; ++j) _mm256_storeu_ps(out + i + 8 * j, v[j]);
  }
  for (int64_t i = whole; i < cols; ++i) out[i] = to_float(x[i]);
  for (int64_t i = cols; i % kLanes != 0; ++i) out[i] = 0.0f;
}

// 16 values in column order to the 8 even ones and the 8 odd ones.
void split_half(__m256 v0, __m256 v1, __m256& even, __m256& odd) {
  const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
  even = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(v0, v1, 0x88), order);
  odd = _mm256_permutevar8x32_ps(_mm256_shuffle_ps(v0, v1, 0xdd), order);
}

// One group of 32 in v[4] to the even ones and the odd ones.
void split(__m256* v) {
  __m256 even[2], odd[2];
  split_half(v[0], v[1], even[0], odd[0]);
  split_half(v[2], v[3], even[1], odd[1]);
  v[0] = even[0], v[1] = even[1], v[2] = odd[0], v[3] = odd[1];
}

void split_pairs(const float* x, int64_t cols, float* out) {
  for (int64_t i = 0; i < cols; i += 32) {
    __m256 v[4];
    for (int j = 0; j < 4; ++j) v[j] = _mm256_loadu_ps(x + i + 8 * j);
    split(v);
    for (int j = 0; j < 4; ++j) _mm256_storeu_ps(out + i + 8 * j, v[j]);
  }
}

void fold_scales(const float* x, const uint8_t* scale, int64_t cols, float* out) {
  for (int64_t i = 0; i < cols; i += 8) {
    // 2^8 is what unpack_e4m3 leaves out.
    const __m256 s = _mm256_set1_ps(ue8m0_to_float(scale[i / 32]) * 0x1p8f);
    _mm256_storeu_ps(out + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), s));
  }
}

// ---- tiles

void unpack_fp4_row(const RowBlock& b, int64_t r, int64_t col, int64_t cols, float* out) {
  const uint8_t* code = b.data + r * b.row_bytes + col / 2;
  const uint8_t* scale = b.scale + (r * b.cols + col) / 32;
  for (int64_t i = 0; i < cols; i += 32, code += 16) {
    const __m256 s = _mm256_set1_ps(ue8m0_to_float(scale[i / 32]));
    const __m256 table = _mm256_mul_ps(e2m1_magnitudes(), s);
    LanePair even, odd;
    unpack_e2m1(code, table, even.lo, odd.lo);
    unpack_e2m1(code + 8, table, even.hi, odd.hi);
    store_lanes(out + i, even);
    store_lanes(out + i + kLanes, odd);
  }
}

void unpack_fp8_row(const RowBlock& b, int64_t r, int64_t col, int64_t cols, float* out) {
  const uint8_t* code = b.data + r * b.row_bytes + col;
  for (int64_t i = 0; i < cols; i += kLanes) {
    const __m256 s = _mm256_set1_ps(ue8m0_to_float(b.scale[(col + i) / 32]) * 0x1p8f);
    const LanePair w = unpack_e4m3(code + i);
    store_lanes(out + i, {_mm256_mul_ps(w.lo, s), _mm256_mul_ps(w.hi, s)});
  }
}

void unpack_bf16_row(const RowBlock& b, int64_t r, int64_t col, int64_t cols, float* out) {
  const uint8_t* bits = b.data + r * b.row_bytes + 2 * col;
  int64_t i = 0;
  for (; i + 8 <= cols; i += 8) _mm256_storeu_ps(out + i, widen_bf16(bits + 2 * i));
  for (; i < cols; ++i) {
    out[i] = to_float(Bf16{static_cast<uint16_t>(bits[2 * i] | bits[2 * i + 1] << 8)});
  }
  for (; i % kLanes != 0; ++i) out[i] = 0.0f;
}

void unpack(const RowBlock& b, int64_t col, int64_t cols, float* tile) {
  const int64_t padded = (b.rows + kTileRows - 1) / kTileRows * kTileRows;
  for (int64_t r = 0; r < padded; ++r) {
    float* out = tile + r * kTileCols;
    if (r >= b.rows) {
      for (int64_t i = 0; i < cols; i += kLanes) {
        store_lanes(out + i, {_mm256_setzero_ps(), _mm256_setzero_ps()});
      }
    } else if (b.dtype == DType::kI8) {
      unpack_fp4_row(b, r, col, cols, out);
    } else if (b.dtype == DType::kF8E4M3) {
      unpack_fp8_row(b, r, col, cols, out);
    } else {
      unpack_bf16_row(b, r, col, cols, out);
    }
  }
}

// kTileRows rows of the tile times T tokens, in 8 of the lanes.  The folds over I keep the
// accumulators in registers, where g++ 12 would leave an array indexed by loops in memory.
template <int T, size_t... I>
void multiply_half(const TileProduct& p, int64_t row, int64_t token, int64_t lane,
                   std::index_sequence<I...>) {
  const float* w = p.tile + row * kTileCols + lane;
  const float* x[T];
  for (int t = 0; t < T; ++t) x[t] = p.x[token + t] + p.col + lane;
  float* partial = p.partial + (token * kBlockRows + row) * kLanes + lane;
  // I = r * T + t.
  constexpr auto at = [](size_t i) { return (i % T * kBlockRows + i / T) * kLanes; };
  __m256 acc[sizeof...(I)];
  if (p.first) {
    ((acc[I] = _mm256_setzero_ps()), ...);
  } else {
    ((acc[I] = _mm256_loadu_ps(partial + at(I))), ...);
  }
  for (int64_t k = 0; k < p.places; k += kLanes) {
    const __m256 x0 = _mm256_loadu_ps(x[0] + k);
    const __m256 x1 = _mm256_loadu_ps(x[T > 1 ? 1 : 0] + k);
    const __m256 x2 = _mm256_loadu_ps(x[T > 2 ? 2 : 0] + k);
    const auto step = [&](auto i) __attribute__((always_inline)) {
      constexpr size_t t = i % T;
      const __m256 xt = t == 0 ? x0 : t == 1 ? x1 : x2;
      acc[i] = _mm256_fmadd_ps(_mm256_loadu_ps(w + i / T * kTileCols + k), xt, acc[i]);
    };
    (step(std::integral_constant<size_t, I>()), ...);
  }
  (_mm256_storeu_ps(partial + at(I), acc[I]), ...);
}

template <int T>
void multiply_tokens(const TileProduct& p, int64_t token) {
  constexpr auto all = std::make_index_sequence<T * kTileRows>();
  for (int64_t row = 0; row < p.rows; row += kTileRows) {
    multiply_half<T>(p, row, token, 0, all);
    multiply_half<T>(p, row, token, kHalf, all);
  }
  if (!p.last) return;
  for (int64_t i = token * kBlockRows; i < (token + T) * kBlockRows; ++i) {
    if (i % kBlockRows < p.rows) p.y[i] = fold_lanes(load_lanes(p.partial + i * kLanes));
  }
}

void multiply(const TileProduct& p) {
  int64_t token = 0;
  for (; token + kTokens <= p.tokens; token += kTokens) multiply_tokens<kTokens>(p, token);
  if (p.tokens - token == 2) multiply_tokens<2>(p, token);
  if (p.tokens - token == 1) multiply_tokens<1>(p, token);
}

// ---- y

// The bf16 of v in the low half of each element.
__m256i round_bits(__m256 v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i lsb = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
}

__m256 round_bf16(__m256 v) { return _mm256_castsi256_ps(_mm256_slli_epi32(round_bits(v), 16)); }

void store_bf16(__m256 v, Bf16* out) {
  const __m256i bits = round_bits(v);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(bits, bits), 0x08);
  _mm_storeu_si128((__m128i*)out, _mm256_castsi256_si128(packed));
}

void round_row(const float* y, int64_t n, Bf16* out) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) store_bf16(_mm256_loadu_ps(y + i), out + i);
  for (; i < n; ++i) out[i] = to_bf16(y[i]);
}

void sum_rows(const Bf16* const* rows, int64_t num_rows, int64_t n, Bf16* out) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256 sum = _mm256_setzero_ps();
    for (int64_t r = 0; r < num_rows; ++r) {
      sum = _mm256_add_ps(sum, widen_bf16((const uint8_t*)(rows[r] + i)));
    }
    store_bf16(sum, out + i);
  }
  for (; i < n; ++i) {
    float sum = 0.0f;
    for (int64_t r = 0; r < num_rows; ++r) sum += to_float(rows[r][i]);
    out[i] = to_bf16(sum);
  }
}

// exp(v) within 2 units in the last place on [-87, 87], clamped outside; multiplications and
// additions only, so that every ISA has the same bits.
__m256 exp_clamped(__m256 v) {
  v = _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(-87.0f)), _mm256_set1_ps(87.0f));
  const __m256 shift = _mm256_set1_ps(0x1.8p23f);
  const __m256 shifted = _mm256_add_ps(_mm256_mul_ps(v, _mm256_set1_ps(1.44269504f)), shift);
  const __m256 n = _mm256_sub_ps(shifted, shift);
  __m256 r = _mm256_sub_ps(v, _mm256_mul_ps(n, _mm256_set1_ps(0.693359375f)));
  r = _mm256_sub_ps(r, _mm256_mul_ps(n, _mm256_set1_ps(-2.12194440e-4f)));
  __m256 p = _mm256_set1_ps(kExpPolynomial[0]);
  for (int i = 1; i < 6; ++i) {
    p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(kExpPolynomial[i]));
  }
  p = _mm256_add_ps(_mm256_add_ps(_mm256_mul_ps(_mm256_mul_ps(p, r), r), r), _mm256_set1_ps(1.0f));
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
}

__m256 gate_vector(const GateBlock& b, int i) {
  __m256 g = round_bf16(_mm256_loadu_ps(b.g + i));
  __m256 a = round_bf16(_mm256_loadu_ps(b.a + i));
  if (b.limit > 0) {
    const __m256 limit = _mm256_set1_ps(b.limit);
    a = _mm256_min_ps(_mm256_max_ps(a, _mm256_set1_ps(-b.limit)), limit);
    g = _mm256_min_ps(g, limit);
  }
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 e = exp_clamped(_mm256_sub_ps(_mm256_setzero_ps(), g));
  const __m256 silu = _mm256_mul_ps(g, _mm256_div_ps(one, _mm256_add_ps(one, e)));
  __m256 v = _mm256_mul_ps(silu, a);
  if (b.weight != nullptr) v = _mm256_mul_ps(v, _mm256_set1_ps(*b.weight));
  return round_bf16(v);
}

void gate(const GateBlock& b) {
  __m256 v[4];
  for (int i = 0; i < 4; ++i) v[i] = gate_vector(b, 8 * i);
  if (b.quantize) quantize_group(v);
  for (int i = 0; i < 4; ++i) _mm256_storeu_ps(b.h + 8 * i, v[i]);
}

}  // namespace

const LaneKernels& avx2_lanes() {
  static constexpr LaneKernels kLaneKernels = {.dot_tokens = 1,
                                               .dot_bf16_tokens = 1,
                                               .unfolded_tokens = 0,
                                               .max_direct_tokens = 1,
                                               .max_direct_bf16_tokens = 1,
                                               .widen = widen,
                                               .split_pairs = split_pairs,
                                               .fold_scales = fold_scales,
                                               .dot = dot_avx2,
                                               .unpack = unpack,
                                               .multiply = multiply,
                                               .gate = gate,
                                               .round_row = round_row,
                                               .sum_rows = sum_rows};
  return kLaneKernels;
}

}  // namespace fathom::kernels
