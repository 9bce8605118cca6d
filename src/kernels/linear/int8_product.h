// Products of runs of weight rows with int8 rows of x, and how they are cut into items: what the
// drivers of `linear` and `moe_experts` share.
#pragma once

#include "kernels/linear/block_product.h"
#include "kernels/linear/int8.h"

namespace fathom::kernels {

// Memory of `tokens` rows of `cols` columns in a form.
constexpr int64_t int8_code_stride(int64_t cols) { return round_up(cols, 128) + 64; }
constexpr int64_t int8_group_stride(int64_t cols) { return round_up(cols / kGroupCols, 16); }
constexpr int64_t int8_rows_bytes(int64_t tokens, int64_t cols, RowForm form) {
  return round_up(tokens * (code_bytes(form) * int8_code_stride(cols) +
                            (8 + code_bytes(form) / 2) * int8_group_stride(cols)),
                  64);
}
Int8Rows int8_rows(std::byte* memory, int64_t tokens, int64_t cols, RowForm form);

// Rounding a column of x, in multiply-adds as worth_sharing counts them: 0.5 ns, and it is worth
// sharing sooner than a product, since what shares the product next is awake then.
inline constexpr int64_t kMacsPerColumn = 20;

// Rows of an item: y of `tokens` tokens by this many rows, in the caller's scratch.
inline constexpr int64_t kMaxItemRows = 512;

// Cut as cut_product does, in pieces of int8 rows; no item has more than kMaxItemRows rows.
ProductItems cut_int8_product(const WeightMatrix& w, int64_t tokens, int num_threads);

// y [tokens, y_stride] = X · rows [first, end)^T; first is a multiple of kBlockRows, tokens at most
// kInt8TileTokens.  `tile`: kInt8TileBytes, aligned; `block_y`: kInt8TileTokens * kBlockRows
// floats.
void int8_product(const Int8Kernels& kernels, const WeightMatrix& w, int64_t first, int64_t end,
                  const Int8Rows& x, int64_t tokens, std::byte* tile, float* block_y, float* y,
                  int64_t y_stride);

}  // namespace fathom::kernels
