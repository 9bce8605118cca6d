// The vector primitives behind the fast rows of `linear` and `moe_experts`, one table an ISA.
//
// The lane rule: an output is a sum over columns in 16 lanes, lane = place mod 16, one fp32
// accumulator a lane, places in ascending order, and one fixed tree over the lanes at the end:
//   s8[i] = l[i] + l[i+8];  s4[i] = s8[i] + s8[i+4];  s2[i] = s4[i] + s4[i+2];  y = s2[0] + s2[1]
// The place of a column is its index, but in fp4 matrices the even columns of each 32 come before
// the odd ones (a byte holds one of each).  Every product of two stored values is exact in fp32,
// wherever the power-of-two scale is folded in, so the order above fixes the bits: they are the
// same for one token and for many, in all ISAs.  (Scales below 2^-90 would break this; no
// checkpoint has them.)
//
// An e4m3 NaN code in a weight reads as 480, its place in the number line.
#pragma once

#include <cstdint>

#include "kernels/formats.h"

namespace fathom::kernels {

inline constexpr int kLanes = 16;
// Weight rows of a unit of work: the height of an fp8 scale block.
inline constexpr int kBlockRows = 32;
// Columns unpacked at a time: 32 x 512 x 4 B = 64 KB.  4 rows of them and 6 tokens are 20 KB of L1.
inline constexpr int kTileCols = 512;
// Tokens that use a tile; their partial sums take 192 KB of L2.
inline constexpr int kTileTokens = 96;
inline constexpr int kMaxDotTokens = 6;  // of one call of `dot`

// Up to 32 rows of a stored matrix.  fp8: within one row of scale blocks.
struct RowBlock {
  DType dtype;
  const uint8_t* data;  // first row
  int64_t row_bytes;
  const uint8_t* scale;  // fp4: [rows, cols / 32]; fp8: [cols / 32], for all the rows
  int64_t rows;          // 1 .. kBlockRows
  int64_t cols;
};

// y = X T^T over one tile of columns, continued from and kept in `partial` between tiles.
struct TileProduct {
  const float* tile;  // [rows, kTileCols]; rows rounded up to a multiple of 4, the added ones zero
  const float* const* x;  // [tokens] rows of x
  int64_t col;            // first column of the tile in x
  int64_t places;         // columns in the tile, rounded up to a multiple of kLanes
  int64_t rows;           // a multiple of 4
  int64_t tokens;
  float* partial;  // [tokens, kBlockRows, kLanes]
  bool first;      // starts from zero
  bool last;       // folds the lanes and writes y
  float* y;        // [tokens, kBlockRows]
};

// h = bf16( g sigmoid(g) a weight ) for kBlockRows values of one token (kernels/moe/moe.h).
struct GateBlock {
  const float* g;  // [kBlockRows], before rounding
  const float* a;
  float limit;
  const float* weight;  // nullptr: none
  bool quantize;        // round h to e4m3 with a scale
  float* h;             // [kBlockRows]
};

// exp(r) = 1 + r + r^2 (...): the polynomial of every ISA's `gate`, highest power first (Cephes,
// expf.c).
inline constexpr float kExpPolynomial[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                                           4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};

// Rows of x are fp32, zero-padded to a multiple of kLanes.
struct LaneKernels {
  // `dot` takes 1 to dot_tokens <= kMaxDotTokens.  Up to max_direct_tokens go through it in groups,
  // which reads the weights from a cache again but spares the tile; more go through unpack and
  // multiply.
  int dot_tokens;              // of fp8 and fp4 matrices
  int dot_bf16_tokens;         // weights that take fewer registers
  int unfolded_tokens;         // up to so many `dot` folds the scales of fp8 blocks itself
  int max_direct_tokens;       // of fp8 and fp4 matrices
  int max_direct_bf16_tokens;  // these cost less to widen again

  // out = x, or x rounded to e4m3 with a scale per 32 columns.
  void (*widen)(const Bf16* x, int64_t cols, bool quantize, float* out);
  // From columns to fp4 places.
  void (*split_pairs)(const float* x, int64_t cols, float* out);
  // x for `dot` on an fp8 block: the block's scales go into x once for its 32 rows.
  void (*fold_scales)(const float* x, const uint8_t* scale, int64_t cols, float* out);
  // y [tokens, kBlockRows] straight from the stored rows; x of more than unfolded_tokens is folded
  // if the block is fp8.
  void (*dot)(const RowBlock& block, const float* const* x, int64_t tokens, float* y);
  // Columns [col, col + cols) of the block with their scales, as TileProduct::tile.
  void (*unpack)(const RowBlock& block, int64_t col, int64_t cols, float* tile);
  void (*multiply)(const TileProduct& product);
  void (*gate)(const GateBlock& block);
  // Rounds to bf16.
  void (*round_row)(const float* y, int64_t n, Bf16* out);
  // out = bf16(rows[0] + rows[1] + ...), in this order.
  void (*sum_rows)(const Bf16* const* rows, int64_t num_rows, int64_t n, Bf16* out);
};

const LaneKernels& plain_lanes();
const LaneKernels& avx2_lanes();
const LaneKernels& avx512_lanes();

}  // namespace fathom::kernels
