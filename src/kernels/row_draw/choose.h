// The choice of row_draw for one row of the host: what its reference does for every row, and the
// sampler for rows that it has edited.
#pragma once

#include <span>

#include "kernels/row_draw/row_draw.h"

namespace fathom::kernels {

// Scratch memory of one choice; must not move while it is used.
struct DrawScratch {
  float* scores;   // [width]
  int32_t* order;  // [width] candidates that passed the filters so far
  int32_t* edge;   // [width] candidates of the bucket in which a filter cuts
  uint64_t* mass;  // [kBuckets] by distance to the greatest logit

  static constexpr int64_t kBuckets = 2048;
  static constexpr int64_t bytes(int64_t width) { return kBuckets * 8 + width * 12; }
  DrawScratch(std::byte* memory, int64_t width)
      : scores(reinterpret_cast<float*>(memory + kBuckets * 8)),
        order(reinterpret_cast<int32_t*>(scores + width)),
        edge(order + width),
        mass(reinterpret_cast<uint64_t*>(memory)) {}
};

// Of a row with its mask applied.  `scores` may be scratch.scores.  A token, kRowIsNan or
// kRowIsEmpty.
int32_t choose_token(std::span<const float> scores, const RowDraw& draw, DrawScratch scratch);

// Ids are of the row.
void apply_edits(std::span<const LogitEdit> edits, std::span<float> scores);

// -inf where a bit of `mask` is 0.
void apply_token_mask(std::span<const uint32_t> mask, std::span<float> scores);

}  // namespace fathom::kernels
