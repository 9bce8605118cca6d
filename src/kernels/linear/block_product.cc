#include "kernels/linear/block_product.h"

#include <algorithm>

namespace fathom::kernels {
namespace {

constexpr int64_t kTileFloats = int64_t{kBlockRows} * kTileCols;
constexpr int64_t kPartialFloats = int64_t{kTileTokens} * kBlockRows * kLanes;
// 4 multiply-adds a nanosecond when the weights come from memory, 50 when they are reused.
constexpr int64_t kSharedMultiplyAdds = 100'000;

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

void direct_product(const LaneKernels& lanes, const RowBlock& block, const float* const* x,
                    int64_t tokens, const BlockScratch& scratch, float* y) {
  const int64_t groups = (tokens + lanes.dot_tokens - 1) / lanes.dot_tokens;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t begin = tokens * g / groups;
    const int64_t end = tokens * (g + 1) / groups;
    const float* rows[kMaxDotTokens];
    for (int64_t t = begin; t < end; ++t) {
      rows[t - begin] = x[t];
      if (block.dtype != DType::kF8E4M3) continue;
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

bool worth_sharing(int64_t rows, int64_t cols, int64_t tokens) {
  return rows * cols * tokens > kSharedMultiplyAdds;
}

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
  if (tokens <= lanes.max_direct_tokens) {
    direct_product(lanes, block, x, tokens, scratch, y);
  } else {
    tile_product(lanes, block, x, tokens, scratch, y);
  }
}

}  // namespace fathom::kernels
