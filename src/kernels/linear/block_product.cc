#include "kernels/linear/block_product.h"

#include <algorithm>

namespace fathom::kernels {
namespace {

constexpr int64_t kTileFloats = int64_t{kBlockRows} * kTileCols;
constexpr int64_t kPartialFloats = int64_t{kTileTokens} * kBlockRows * kLanes;
// 15 multiply-adds a nanosecond with one token, more with many.
constexpr int64_t kSharedMultiplyAdds = 300'000;

// The x of a piece of the tokens by the columns of one tile stays in L2 (1.25 MB at least) beside
// the tile and its partial sums; all of it comes from L3, which costs less than unpacking a tile
// for half the tokens.
constexpr int64_t kPieceFloats = 512 * 1024;
constexpr int64_t kLeastPieceTokens = 24;
// With few tokens, an item has about this many bytes of weights; with many, this many blocks.
constexpr int64_t kItemBytes = 160 * 1024;
constexpr int64_t kItemBlocks = 8;
// A thread that is held up should hold up no more than a small share.
constexpr int64_t kItemsPerThread = 8;

void direct_product(const LaneKernels& lanes, const RowBlock& block, const float* const* x,
                    int64_t tokens, const BlockScratch& scratch, float* y) {
  const int64_t most = block.dtype == DType::kBf16 ? lanes.dot_bf16_tokens : lanes.dot_tokens;
  const int64_t groups = (tokens + most - 1) / most;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t begin = tokens * g / groups;
    const int64_t end = tokens * (g + 1) / groups;
    const bool fold = block.dtype == DType::kF8E4M3 && end - begin > lanes.unfolded_tokens;
    const float* rows[kMaxDotTokens];
    for (int64_t t = begin; t < end; ++t) {
      rows[t - begin] = x[t];
      if (!fold) continue;
      float* folded = scratch.folded + (t - begin) * x_row_stride(block.cols);
      lanes.fold_scales(x[t], block.scale, block.cols, folded);
      rows[t - begin] = folded;
    }
    lanes.dot(block, rows, end - begin, y + begin * kBlockRows);
  }
}

void tile_product(const LaneKernels& lanes, const RowBlock& block, const float* const* x,
                  int64_t tokens, const BlockScratch& scratch, float* y) {
  for (int64_t col = 0; col < block.cols; col += kTileCols) {
    const int64_t cols = std::min<int64_t>(kTileCols, block.cols - col);
    lanes.unpack(block, col, cols, scratch.tile);
    lanes.multiply({.tile = scratch.tile,
                    .x = x,
                    .col = col,
                    .places = round_up(cols, kLanes),
                    .rows = round_up(block.rows, 4),
                    .tokens = tokens,
                    .partial = scratch.partial,
                    .first = col == 0,
                    .last = col + cols == block.cols,
                    .y = y});
  }
}

}  // namespace

int64_t stored_row_bytes(const WeightMatrix& w) {
  if (w.dtype == DType::kI8) return w.cols / 2;
  return w.cols * dtype_bytes(w.dtype);
}

RowBlock row_block(const WeightMatrix& w, int64_t row) {
  RowBlock block{.dtype = w.dtype,
                 .data = w.data + row * stored_row_bytes(w),
                 .row_bytes = stored_row_bytes(w),
                 .scale = nullptr,
                 .rows = std::min<int64_t>(kBlockRows, w.rows - row),
                 .cols = w.cols};
  if (w.dtype == DType::kF8E4M3) block.scale = w.scale + row / kBlockRows * (w.cols / 32);
  if (w.dtype == DType::kI8) block.scale = w.scale + row * (w.cols / 32);
  return block;
}

ProductItems cut_product(const WeightMatrix& w, int64_t tokens, int num_threads) {
  const int64_t fit = std::clamp<int64_t>(kPieceFloats / std::max<int64_t>(1, w.cols),
                                          kLeastPieceTokens, kTileTokens);
  ProductItems items{.num_blocks = (w.rows + kBlockRows - 1) / kBlockRows,
                     .blocks_per_item = kItemBlocks,
                     .tokens = tokens,
                     .num_pieces = (tokens + fit - 1) / fit};
  if (tokens < kLeastPieceTokens) {
    const int64_t block_bytes = kBlockRows * stored_row_bytes(w);
    items.blocks_per_item = kItemBytes / std::max<int64_t>(1, block_bytes);
    items.num_runs = num_threads;
  }
  const int64_t fair = items.num_blocks * items.num_pieces / (kItemsPerThread * num_threads);
  items.blocks_per_item = std::max<int64_t>(1, std::min(items.blocks_per_item, fair));
  return items;
}

ProductItems::Item ProductItems::item(int64_t i) const {
  const int64_t piece = i % num_pieces;
  const int64_t turn = i / num_pieces / num_runs, run = i / num_pieces % num_runs;
  const int64_t n = num_row_items();
  const int64_t first =
      (run * (n / num_runs) + std::min(run, n % num_runs) + turn) * blocks_per_item;
  const int64_t last = std::min(first + blocks_per_item, num_blocks);
  return {.first_row = first * kBlockRows,
          .end_row = last * kBlockRows,
          .first_token = tokens * piece / num_pieces,
          .end_token = tokens * (piece + 1) / num_pieces};
}

bool worth_sharing(int64_t multiply_adds) { return multiply_adds > kSharedMultiplyAdds; }

int64_t block_scratch_floats(int64_t cols) {
  return kTileFloats + kPartialFloats + kMaxDotTokens * x_row_stride(cols);
}

BlockScratch block_scratch(float* memory) {
  return {.tile = memory,
          .partial = memory + kTileFloats,
          .folded = memory + kTileFloats + kPartialFloats};
}

void block_product(const LaneKernels& lanes, const WeightMatrix& w, int64_t row,
                   const float* const* x, int64_t tokens, const BlockScratch& scratch, float* y) {
  const RowBlock block = row_block(w, row);
  if (tokens <=
      (block.dtype == DType::kBf16 ? lanes.max_direct_bf16_tokens : lanes.max_direct_tokens)) {
    direct_product(lanes, block, x, tokens, scratch, y);
  } else {
    tile_product(lanes, block, x, tokens, scratch, y);
  }
}

}  // namespace fathom::kernels
