// The integer tile product with AMX, for 9 tokens and more; fewer are read straight from the stored
// rows as with AVX-512.
//
// Limit: a tile product has 32 columns, one group, so half of the unit's depth: 32 tokens by 32
// rows take it 64 cycles a plane.  The sums go through L1 to the vector units, which need 3 (fp4)
// or 4 (fp8) operations for each 16 of them: 96 or 128 cycles at two a cycle.  So some 340 (fp4) or
// 256 (fp8) multiply-adds a cycle at most, 3 to 4 times what vpdpbusd does.  The sums of a group
// are used between the tile products of the next group and their stores: both fit the reorder
// buffer, so the two units run side by side.
#include <immintrin.h>

#include <algorithm>

#include "kernels/linear/x86_amx_tiles.h"
#include "kernels/linear/x86_avx512_int8.h"
#include "kernels/linear/x86_avx512_vec.h"

namespace fathom::kernels {
namespace {

constexpr int64_t kTokens = 2 * kTileRowsMax;
constexpr int64_t kTileGroups = kInt8TileCols / kGroupCols;

// Of a group: [plane][sum tile][16 tokens][16 rows].
struct alignas(64) Sums {
  int32_t tile[2][4][kTileRowsMax][16];
};

// The part of a product that belongs to up to 32 tokens.
template <class Tiles, bool kFp8>
class TokenBlock {
 public:
  static constexpr int kPlanes = kFp8 ? 2 : 1;

  TokenBlock(const Int8TileProduct& p, int64_t token, int64_t tokens, Tiles& tiles)
      : p_(p),
        x_(p.x.from(token)),
        y_(p.y + token * kBlockRows),
        tokens_(tokens),
        first_group_(p.col / kGroupCols),
        first_(token == 0),
        tiles_(tiles) {
    if constexpr (kFp8) fold_scales();
  }

  void run() {
    const int64_t groups = p_.cols / kGroupCols;
    step(0, -1);
    for (int64_t g = 1; g < groups; ++g) step(g, g - 1);
    finish(groups - 1, 0, tokens_);
  }

 private:
  void fold_scales() {
    for (int64_t g = 0; g < p_.cols / kGroupCols; g += 16) {
      const __m512 s = load_scales(p_.block->scale + first_group_ + g, p_.cols / kGroupCols - g);
      for (int64_t t = 0; t < tokens_; ++t) {
        const float* xs = x_.scale + t * x_.group_stride + first_group_ + g;
        _mm512_store_ps(folded_[t] + g, _mm512_mul_ps(s, _mm512_loadu_ps(xs)));
      }
    }
  }

  // Tile products of group g, and meanwhile y from the sums of group `before`; -1: none.
  void step(int64_t g, int64_t before) {
    const std::byte* w = p_.tile + g * kPlanes * kPlaneBytes;
    const int8_t* code = x_.code + p_.col + g * kGroupCols;
    Sums& sums = sums_[g % 2];
    tiles_.template load<4>(code, x_.code_stride);
    if (tokens_ > kTileRowsMax) {
      tiles_.template load<5>(code + kTileRowsMax * x_.code_stride, x_.code_stride);
    }
    if (first_) prefetch_ahead(g);
    multiply_plane<false>(w);
    const int64_t half = kFp8 ? std::min<int64_t>(tokens_, kTileRowsMax) : tokens_;
    if (before >= 0) finish(before, 0, half);
    store_plane(sums.tile[0]);
    if constexpr (kFp8) {
      multiply_plane<true>(w + kPlaneBytes);
      if (before >= 0) finish(before, half, tokens_);
      store_plane(sums.tile[1]);
    }
  }

  // A share of the stored bytes of the next tile.
  void prefetch_ahead(int64_t g) const {
    constexpr int64_t kLines = kFp8 ? kBlockRows / 2 : kBlockRows / 4;
    for (int64_t i = g * kLines; i < (g + 1) * kLines; ++i) {
      const uint8_t* line = p_.ahead + i % kBlockRows * p_.ahead_stride + i / kBlockRows * 64;
      _mm_prefetch(reinterpret_cast<const char*>(line), _MM_HINT_T0);
    }
  }

  template <bool kUnsigned>
  void multiply_plane(const std::byte* w) {
    constexpr int64_t kStride = kBlockRows * 4;
    tiles_.template load<6>(w, kStride);
    tiles_.template load<7>(w + 64, kStride);
    tiles_.template zero<0>();
    tiles_.template multiply<0, kUnsigned>();
    tiles_.template zero<1>();
    tiles_.template multiply<1, kUnsigned>();
    if (tokens_ > kTileRowsMax) {
      tiles_.template zero<2>();
      tiles_.template multiply<2, kUnsigned>();
      tiles_.template zero<3>();
      tiles_.template multiply<3, kUnsigned>();
    }
  }

  void store_plane(int32_t (*sums)[kTileRowsMax][16]) {
    tiles_.template store<0>(sums[0]);
    tiles_.template store<1>(sums[1]);
    if (tokens_ > kTileRowsMax) {
      tiles_.template store<2>(sums[2]);
      tiles_.template store<3>(sums[3]);
    }
  }

  // y of tokens [begin, end) from the sums of group g.
  void finish(int64_t g, int64_t begin, int64_t end) {
    const auto* scales = reinterpret_cast<const float*>(p_.tile + kScaleOffset) + g * kBlockRows;
    const Sums& sums = sums_[g % 2];
    const bool first = p_.col + g == 0;
    const bool last = p_.col + (g + 1) * kGroupCols == p_.block->cols;
    __m512 scale[2];
    if constexpr (!kFp8) {
      scale[0] = _mm512_load_ps(scales);
      scale[1] = _mm512_load_ps(scales + 16);
    }
    for (int64_t t = begin; t < end; ++t) {
      float* y = y_ + t * kBlockRows;
      const int64_t tile = t / kTileRowsMax * 2, row = t % kTileRowsMax;
      const __m512 xs =
          _mm512_set1_ps(kFp8 ? folded_[t][g] : x_.scale[t * x_.group_stride + first_group_ + g]);
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        __m512i sum = _mm512_load_si512(sums.tile[0][tile + v][row]);
        if constexpr (kFp8) {
          const __m512i low = _mm512_load_si512(sums.tile[1][tile + v][row]);
          sum = _mm512_add_epi32(_mm512_slli_epi32(sum, 8), low);
        }
        __m512 f = _mm512_cvtepi32_ps(sum);
        if constexpr (!kFp8) f = _mm512_mul_ps(f, scale[v]);
        __m512 acc = first ? _mm512_setzero_ps() : _mm512_load_ps(y + 16 * v);
        acc = _mm512_fmadd_ps(f, xs, acc);
        if (last) acc = _mm512_mul_ps(acc, _mm512_set1_ps(kFp8 ? 0x1p-6f : 0.5f));
        _mm512_store_ps(y + 16 * v, acc);
      }
    }
  }

  const Int8TileProduct& p_;
  Int8Rows x_;
  float* y_;
  int64_t tokens_;
  int64_t first_group_;
  bool first_;  // of the blocks of this tile
  Tiles& tiles_;
  Sums sums_[2];
  alignas(64) float folded_[kFp8 ? kTokens : 1][kTileGroups];
};

template <class Tiles>
void multiply(const Int8TileProduct& p) {
  Tiles tiles;
  const int64_t parts = (p.tokens + kTokens - 1) / kTokens;
  int64_t configured = 0;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t token = p.tokens * part / parts;
    const int64_t tokens = p.tokens * (part + 1) / parts - token;
    if (tokens != configured) {
      const int64_t first = std::min<int64_t>(tokens, kTileRowsMax);
      tiles.configure(TileConfig(first, tokens - first));
      configured = tokens;
    }
    if (p.block->dtype == DType::kI8) {
      TokenBlock<Tiles, false>(p, token, tokens, tiles).run();
    } else {
      TokenBlock<Tiles, true>(p, token, tokens, tiles).run();
    }
  }
  tiles.release();
}

Int8Kernels table(void (*product)(const Int8TileProduct&)) {
  return {.lanes = &avx512_lanes(),
          .max_direct_tokens = kMaxInt8DotTokens,
          .max_direct_e4m3_tokens = kAvx512RowTokens,
          .quantize = quantize_avx512,
          .quantize_row = quantize_row_avx512,
          .dot = dot_int8_avx512,
          .unpack = unpack_int8_amx,
          .multiply = product};
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
