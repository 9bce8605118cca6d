// The integer tile product with AMX, for many tokens; fewer go the ways of AVX-512.  Tiles whose 16
// rows are the weights' took as long or longer for 4 to 8 tokens (bench/results).
//
// Tiles: 0 - 3 sums [tokens][16 rows], 4 and 5 x [tokens][32 columns] of two groups, 6 and 7
// weights [8][16 rows][4 columns].  Sums 0 and 1 are of x 4 with weights 6 and 7, sums 2 and 3 of
// x 5.
//
// A tile product is 16 tokens by 16 rows by 32 columns, one group, so half of the unit's depth: 16
// cycles, and its sums go through L1 to the vector units: 16 for storing them, 12 for loading x and
// weights, and 24 (fp4) or 32 (fp8, two products) for going on in fp32.  Measured on an Emerald
// Rapids whose other hyperthreads were busy (bench/results): these add up, 62 cycles for fp4 and 85
// for fp8, where vpdpbusd takes 91 and 168.  What cost more: tiles that are cleared just before
// their product one by one (50 cycles each), and buffers of sums 4 KB apart, whose loads wait for
// stores to the same place in another page.
#include <immintrin.h>

#include <algorithm>

#include "kernels/linear/x86_amx_tiles.h"
#include "kernels/linear/x86_avx512_int8_few.h"
#include "kernels/linear/x86_avx512_vec.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kTokens = kTileRowsMax;
constexpr int64_t kTileGroups = kInt8TileCols / kGroupCols;
// Where it takes less time than vpdpbusd (measured, bench/results).
constexpr int64_t kLeastFp8Tokens = 32;
constexpr int64_t kLeastFp4Tokens = 48;
constexpr int64_t kLineBytes = kBlockRows * 4;  // of a tile: 4 columns of all rows
constexpr int64_t kSumBytes = 64;               // a row of a tile of sums

TileConfig many_tokens(int64_t tokens) {
  TileConfig config;
  for (int i = 0; i < 4; ++i) config.shape(i, tokens, kSumBytes);
  for (int i = 4; i < 6; ++i) config.shape(i, tokens, kGroupCols);
  for (int i = 6; i < 8; ++i) config.shape(i, 8, kSumBytes);
  return config;
}

// The sums of two groups, in two tiles each: [16 tokens][16 rows].
struct alignas(64) Sums {
  int32_t tile[4][kTokens][16];
};

// fp4: the two tiles of a group are the two halves of the rows, and y stays in memory.  fp8: they
// are the high and the low bytes of one half of the rows, and the halves come one after the other.
template <class Tiles, bool kFp8>
class TokenBlock {
 public:
  // Up to 16 tokens.
  TokenBlock(const Int8TileProduct& p, int64_t token, int64_t tokens, Tiles& tiles)
      : p_(p),
        code_(p.x.from(token).code + p.col),
        y_(p.y + token * kBlockRows),
        tokens_(tokens),
        groups_(p.cols / kGroupCols),
        tiles_(tiles) {
    take_scales(p.x.from(token));
    if (p.col == 0) std::fill_n(y_, tokens * kBlockRows, 0.0f);
  }

  void run(bool prefetch) {
    if constexpr (kFp8) {
      for (int64_t half = 0; half < 2; ++half) {
        prefetch_ = prefetch && half == 0;
        tokens_ == kTokens ? run_fp8_whole(half) : run_fp8_some(half);
      }
    } else {
      prefetch_ = prefetch;
      tokens_ == kTokens ? run_fp4_whole() : run_fp4_some();
    }
    if (p_.col + p_.cols < p_.block->cols) return;
    const __m512 unit = _mm512_set1_ps(kFp8 ? 0x1p-6f : 0.5f);
    for (int64_t i = 0; i < tokens_ * kBlockRows; i += 16) {
      _mm512_storeu_ps(y_ + i, _mm512_mul_ps(_mm512_loadu_ps(y_ + i), unit));
    }
  }

 private:
  // Of x; fp8: with the block's.
  void take_scales(const Int8Rows& x) {
    const int64_t first = p_.col / kGroupCols;
    const __mmask16 there = first_lanes(groups_);
    const __m512 w = kFp8 ? load_scales(p_.block->scale + first, groups_) : _mm512_set1_ps(1.0f);
    for (int64_t t = 0; t < tokens_; ++t) {
      const __m512 s = _mm512_maskz_loadu_ps(there, x.scale + t * x.group_stride + first);
      _mm512_store_ps(scale_[t], kFp8 ? _mm512_mul_ps(w, s) : s);
    }
  }

  // The products of group g, of a half if fp8, begin; kOdd: of g.
  template <int kOdd>
  inline __attribute__((always_inline)) void start(int64_t g, int64_t half) {
    const std::byte* w = p_.tile + g * (kFp8 ? 2 : 1) * kPlaneBytes + half * 64;
    tiles_.template load<4 + kOdd>(code_ + g * kGroupCols, p_.x.code_stride);
    tiles_.template load<6>(w, kLineBytes);
    tiles_.template load<7>(w + (kFp8 ? kPlaneBytes : 64), kLineBytes);
    tiles_.template zero<2 * kOdd>();
    tiles_.template zero<2 * kOdd + 1>();
    tiles_.template multiply<2 * kOdd, 4 + kOdd, 6, false>();
    tiles_.template multiply<2 * kOdd + 1, 4 + kOdd, 7, kFp8>();
  }

  // finish(g, sums of its two tiles), while the products of the next group run.
  template <int kOdd, class Finish>
  inline __attribute__((always_inline)) void step(int64_t g, int64_t half, Finish&& finish) {
    if (g + 1 < groups_) start<1 - kOdd>(g + 1, half);
    tiles_.template store<2 * kOdd>(sums_.tile[2 * kOdd], kSumBytes);
    tiles_.template store<2 * kOdd + 1>(sums_.tile[2 * kOdd + 1], kSumBytes);
    finish(g, sums_.tile[2 * kOdd][0]);
  }
  template <class Finish>
  inline __attribute__((always_inline)) void all_steps(int64_t half, Finish&& finish) {
    start<0>(0, half);
    for (int64_t g = 0; g < groups_; g += 2) {
      if (prefetch_) prefetch_ahead(g);
      step<0>(g, half, finish);
      if (g + 1 < groups_) step<1>(g + 1, half, finish);
    }
  }

  struct RowScales {
    __m512 w0, w1;
  };
  RowScales row_scales(int64_t g) const {
    const auto* scales = reinterpret_cast<const float*>(p_.tile + kScaleOffset) + g * kBlockRows;
    return {_mm512_load_ps(scales), _mm512_load_ps(scales + 16)};
  }
  inline __attribute__((always_inline)) void finish_fp4(int64_t g, const int32_t* sums,
                                                        const RowScales& w, int64_t t) {
    const __m512 s = _mm512_set1_ps(scale_[t][g]);
    const __m512 f0 = _mm512_mul_ps(as_float(sums + 16 * t), w.w0);
    const __m512 f1 = _mm512_mul_ps(as_float(sums + 16 * (kTokens + t)), w.w1);
    float* at = y_ + t * kBlockRows;
    _mm512_storeu_ps(at, _mm512_fmadd_ps(f0, s, _mm512_loadu_ps(at)));
    _mm512_storeu_ps(at + 16, _mm512_fmadd_ps(f1, s, _mm512_loadu_ps(at + 16)));
  }
  void run_fp4_whole() {
    all_steps(
        0, [&](int64_t g, const int32_t* sums) __attribute__((always_inline)) {
          const RowScales w = row_scales(g);
          each<kTokens>([&](auto t) __attribute__((always_inline)) { finish_fp4(g, sums, w, t); });
        });
  }
  void run_fp4_some() {
    all_steps(
        0, [&](int64_t g, const int32_t* sums) __attribute__((always_inline)) {
          const RowScales w = row_scales(g);
          for (int64_t t = 0; t < tokens_; ++t) finish_fp4(g, sums, w, t);
        });
  }

  inline __attribute__((always_inline)) __m512 finish_fp8(int64_t g, const int32_t* sums, int64_t t,
                                                          __m512 y) {
    // Both sums are below 2^24, so this rounds once, as the conversion of their sum would.
    const __m512 f = _mm512_fmadd_ps(as_float(sums + 16 * t), _mm512_set1_ps(256.0f),
                                     as_float(sums + 16 * (kTokens + t)));
    return _mm512_fmadd_ps(f, _mm512_set1_ps(scale_[t][g]), y);
  }
  void run_fp8_whole(int64_t half) {
    float* y = y_ + half * 16;
    __m512 acc[kTokens];
    each<kTokens>([&](auto t) __attribute__((always_inline)) {
      acc[t] = _mm512_loadu_ps(y + t * kBlockRows);
    });
    all_steps(
        half, [&](int64_t g, const int32_t* sums) __attribute__((always_inline)) {
          each<kTokens>([&](auto t) __attribute__((always_inline)) {
            acc[t] = finish_fp8(g, sums, t, acc[t]);
          });
        });
    each<kTokens>([&](auto t) __attribute__((always_inline)) {
      _mm512_storeu_ps(y + t * kBlockRows, acc[t]);
    });
  }
  void run_fp8_some(int64_t half) {
    float* y = y_ + half * 16;
    all_steps(
        half, [&](int64_t g, const int32_t* sums) __attribute__((always_inline)) {
          for (int64_t t = 0; t < tokens_; ++t) {
            float* at = y + t * kBlockRows;
            _mm512_storeu_ps(at, finish_fp8(g, sums, t, _mm512_loadu_ps(at)));
          }
        });
  }

  static __m512 as_float(const int32_t* sums) {
    return _mm512_cvtepi32_ps(_mm512_load_si512(sums));
  }

  // A share of the stored bytes of the next tile, for two groups.
  void prefetch_ahead(int64_t g) const {
    constexpr int64_t kLines = kFp8 ? kBlockRows / 2 : kBlockRows / 4;
    for (int64_t i = g * kLines; i < (g + 2) * kLines; ++i) {
      const uint8_t* line = p_.ahead + i % kBlockRows * p_.ahead_stride + i / kBlockRows * 64;
      _mm_prefetch(reinterpret_cast<const char*>(line), _MM_HINT_T1);
    }
  }

  const Int8TileProduct& p_;
  const int8_t* code_;
  float* y_;
  int64_t tokens_;
  int64_t groups_;
  bool prefetch_ = false;
  Tiles& tiles_;
  Sums sums_;
  alignas(64) float scale_[kTokens][kTileGroups];
};

template <class Tiles>
void multiply(const Int8TileProduct& p) {
  Tiles tiles;
  int64_t configured = 0;
  for (int64_t token = 0; token < p.tokens; token += kTokens) {
    const int64_t tokens = std::min(kTokens, p.tokens - token);
    if (tokens != configured) tiles.configure(many_tokens(tokens));
    configured = tokens;
    if (p.block->dtype == DType::kI8) {
      TokenBlock<Tiles, false>(p, token, tokens, tiles).run(token == 0);
    } else {
      TokenBlock<Tiles, true>(p, token, tokens, tiles).run(token == 0);
    }
  }
  tiles.release();
}

Int8Kernels table(void (*product)(const Int8TileProduct&)) {
  return {.lanes = &avx512_lanes(),
          .max_direct_fp4_tokens = kMaxInt8DotTokens,
          .max_direct_fp8_tokens = kMaxInt8DotTokens,
          .max_direct_e4m3_tokens = kAvx512RowTokens,
          .quantize = quantize_avx512,
          .quantize_row = quantize_row_avx512,
          .dot = dot_int8_avx512,
          .unpack = unpack_int8_amx,
          .multiply = product,
          .below = &avx512_int8(),
          .least_fp8_tokens = kLeastFp8Tokens,
          .least_fp4_tokens = kLeastFp4Tokens};
}

}  // namespace

const Int8Kernels& amx_int8() {
  static const Int8Kernels kKernels = table(multiply<HardwareTiles>);
  return kKernels;
}

const Int8Kernels& amx_emulated_int8() {
  static const Int8Kernels kKernels = table(multiply<EmulatedTiles>);
  return kKernels;
}

}  // namespace fathom::kernels
