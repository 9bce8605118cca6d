#include "kernels/linear/int8_product.h"

#include <algorithm>

namespace fathom::kernels {
namespace {

// x of a piece stays in L2 beside a tile where that has 1 MB and more (measured with 2 MB).
constexpr int64_t kPieceBytes = 768 * 1024;
constexpr int64_t kLeastPieceTokens = 24;
// Weights of an item when they are what limits it: a stream for each of 16 parts of its rows.
constexpr int64_t kItemBytes = 1024 * 1024;
constexpr int64_t kItemBlocks = 8;
// A thread that is held up should hold up no more than a small share.  Items of some tokens pack
// their x first, so that fewer are better.
constexpr int64_t kItemsPerThread = 8;
constexpr int64_t kFewItemsPerThread = 4;

void tile_product(const Int8Kernels& kernels, const RowBlock& block, const Int8Rows& x,
                  int64_t tokens, std::byte* tile, float* y) {
  const int64_t unit = block.dtype == DType::kI8 ? 2 : 1;  // columns a byte
  const int64_t scale_bytes = block.cols / kGroupCols * (unit == 2 ? block.rows : 1);
  for (int64_t col = 0; col < block.cols; col += kInt8TileCols) {
    const int64_t cols = std::min<int64_t>(kInt8TileCols, block.cols - col);
    // A share of the scales of the block that likely comes next.
    const int64_t end = scale_bytes * (col + cols) / block.cols;
    for (int64_t i = scale_bytes * col / block.cols; i < end; i += 64) {
      __builtin_prefetch(block.scale + scale_bytes + i);
    }
    kernels.unpack(block, col, cols, tile);
    const bool last = col + cols == block.cols;
    kernels.multiply({.tile = tile,
                      .block = &block,
                      .x = x,
                      .tokens = tokens,
                      .col = col,
                      .cols = cols,
                      .y = y,
                      .ahead = last ? block.data + block.rows * block.row_bytes
                                    : block.data + (col + cols) / unit,
                      .ahead_stride = block.row_bytes});
  }
}

}  // namespace

Int8Rows int8_rows(std::byte* memory, int64_t tokens, int64_t cols, RowForm form) {
  const int64_t stride = int8_code_stride(cols);
  const int64_t groups = int8_group_stride(cols);
  auto* code = reinterpret_cast<int8_t*>(memory);
  auto* scale = reinterpret_cast<float*>(memory + code_bytes(form) * tokens * stride);
  auto* offset = reinterpret_cast<int32_t*>(scale + tokens * groups);
  Int8Rows rows = {code, stride, scale, offset, groups, nullptr, nullptr, nullptr};
  if (form == RowForm::kE4m3Fp4) {
    rows.low = code + tokens * stride;
    rows.fine = code + 2 * tokens * stride;
    rows.has_fine = reinterpret_cast<uint8_t*>(offset + tokens * groups);
  }
  return rows;
}

ProductItems cut_int8_product(const WeightMatrix& w, int64_t tokens, int num_threads) {
  const int64_t fit = std::clamp<int64_t>(kPieceBytes / std::max<int64_t>(1, w.cols),
                                          kLeastPieceTokens, kInt8TileTokens);
  ProductItems items{.num_blocks = (w.rows + kBlockRows - 1) / kBlockRows,
                     .blocks_per_item = kItemBlocks,
                     .tokens = tokens,
                     .num_pieces = (tokens + fit - 1) / fit};
  if (tokens < kLeastPieceTokens) {
    items.blocks_per_item = kItemBytes / std::max<int64_t>(1, kBlockRows * stored_row_bytes(w));
  }
  const bool packs = tokens > 3 && tokens <= kMaxInt8DotTokens;
  const int64_t per_thread = packs ? kFewItemsPerThread : kItemsPerThread;
  const int64_t fair = items.num_blocks * items.num_pieces / (per_thread * num_threads);
  items.blocks_per_item =
      std::clamp<int64_t>(std::min(items.blocks_per_item, fair), 1, kMaxItemRows / kBlockRows);
  return items;
}

void int8_product(const Int8Kernels& kernels, const WeightMatrix& w, int64_t first, int64_t end,
                  const Int8Rows& x, int64_t tokens, std::byte* tile, float* block_y, float* y,
                  int64_t y_stride) {
  const int64_t rows = std::min(end, w.rows) - first;
  const int64_t most = !is_fp4(w)         ? kernels.max_direct_fp8_tokens
                       : x.low != nullptr ? kernels.max_direct_e4m3_tokens
                                          : kernels.max_direct_fp4_tokens;
  if (tokens <= most) {
    kernels.dot({.w = &w, .first = first, .rows = rows}, x, tokens, y, y_stride);
    return;
  }
  const int64_t least = is_fp4(w) ? kernels.least_fp4_tokens : kernels.least_fp8_tokens;
  const Int8Kernels& tiles = kernels.below != nullptr && tokens < least ? *kernels.below : kernels;
  for (int64_t r = 0; r < rows; r += kBlockRows) {
    const RowBlock block = row_block(w, first + r);
    tile_product(tiles, block, x, tokens, tile, block_y);
    for (int64_t t = 0; t < tokens; ++t) {
      std::copy_n(block_y + t * kBlockRows, block.rows, y + t * y_stride + r);
    }
  }
}

}  // namespace fathom::kernels
