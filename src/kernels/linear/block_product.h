// Products of up to 32 weight rows with any number of tokens: what an item of a parallel loop does
// in the fast rows of `linear` and `moe_experts`.
#pragma once

#include "device/stream.h"
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

inline bool is_fp4(const WeightMatrix& w) { return w.dtype == DType::kI8; }
// fp8 or fp4: with scales.
inline bool is_blocked(const WeightMatrix& w) { return is_fp4(w) || w.dtype == DType::kF8E4M3; }

// Bytes of a stored row, without scales.
int64_t stored_row_bytes(const WeightMatrix& w);
// Rows [row, row + kBlockRows) of w, fewer at its end; row is a multiple of kBlockRows.
RowBlock row_block(const WeightMatrix& w, int64_t row);

// y [tokens, kBlockRows] = X · rows [row, row + min(kBlockRows, w.rows - row)) of w.  row is a
// multiple of kBlockRows; 1 <= tokens <= kTileTokens.  x: a pointer a token, in fp4 places if w is
// fp4.
void block_product(const LaneKernels& lanes, const WeightMatrix& w, int64_t row,
                   const float* const* x, int64_t tokens, const BlockScratch& scratch, float* y);

// How the product of a matrix with many tokens is cut into items of a parallel loop: `num_items()`
// of them, each some blocks of rows by one piece of the tokens.  No cut changes a bit.
struct ProductItems {
  int64_t num_blocks;       // of kBlockRows rows
  int64_t blocks_per_item;  // consecutive ones: their x stays in L2, a stream of weights goes on
  int64_t tokens;
  int64_t num_pieces;  // of the tokens, equal but for one
  // The rows' items are so many runs of neighbours, and consecutive items belong to one after the
  // other: threads that take turns each go through a run, and find there what they have prefetched.
  int64_t num_runs = 1;

  int64_t num_items() const { return num_row_items() * num_pieces; }
  struct Item {
    int64_t first_row;  // rows [first_row, end_row) in steps of kBlockRows
    int64_t end_row;
    int64_t first_token;
    int64_t end_token;
  };
  // The pieces of the same rows follow each other.
  Item item(int64_t i) const;

 private:
  int64_t num_row_items() const { return (num_blocks + blocks_per_item - 1) / blocks_per_item; }
};
ProductItems cut_product(const WeightMatrix& w, int64_t tokens, int num_threads);

// False for loops that take one core less than about 20 us: not worth waking a thread for.
bool worth_sharing(int64_t multiply_adds);

// fn(item, thread) for all items, on the pool if the work is worth it.
template <class Fn>
void share_items(Stream& stream, int64_t items, bool worth, Fn&& fn) {
  if (worth) {
    stream.pool().parallel_for(items, fn);
  } else {
    for (int64_t i = 0; i < items; ++i) fn(i, 0);
  }
}

}  // namespace fathom::kernels
