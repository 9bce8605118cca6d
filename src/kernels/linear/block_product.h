// Products of up to 32 weight rows with any number of tokens: what an item of a parallel loop does
// in the fast rows of `linear` and `moe_experts`.
#pragma once

#include "kernels/linear/lanes.h"

namespace fathom::kernels {

constexpr int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Floats between rows of x in scratch.  One cache line more than the row, so that the rows of many
// tokens do not meet in the same cache sets.
constexpr int64_t x_row_stride(int64_t cols) { return round_up(cols, kLanes) + kLanes; }

// Private memory of one thread.
struct BlockScratch {
  float* tile;     // [kBlockRows, kTileCols]
  float* partial;  // [kTileTokens, kBlockRows, kLanes]
  float* folded;   // [kMaxDotTokens, x_row_stride(cols)]
};
// In floats; `cols` is the greatest of all products.
int64_t block_scratch_floats(int64_t cols);
BlockScratch block_scratch(float* memory);

// y [tokens, kBlockRows] = X · rows [row, row + min(kBlockRows, w.rows - row)) of w.  row is a
// multiple of kBlockRows; 1 <= tokens <= kTileTokens.  x: a pointer a token, in fp4 places if w is
// fp4.
void block_product(const LaneKernels& lanes, const WeightMatrix& w, int64_t row,
                   const float* const* x, int64_t tokens, const BlockScratch& scratch, float* y);

// Bytes of a stored row, without scales.
int64_t stored_row_bytes(const WeightMatrix& w);

// Loops below this many fp32 multiply-adds, about 15 us of one core, are not worth waking a thread
// for.
bool worth_sharing(int64_t rows, int64_t cols, int64_t tokens);

}  // namespace fathom::kernels
