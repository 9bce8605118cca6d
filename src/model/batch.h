// What one forward pass computes: rows of several sequences, and what comes out.
//
// A segment is a run of consecutive positions of one sequence: a prompt chunk, one decode token,
// drafts.  Several segments of one sequence are allowed if they follow each other in position and
// in the batch.
//
// Bounded replay (docs/spec/model.md 4.1) is a property of the prompt, not of the chunk: the
// decoder runs once on the positions [decoder_floor, ...), when the row of position decoder_start -
// 1 (the prompt's last) is in the batch. STATE holds the decoder's entrance of the last window of
// rows, so the chunks before need not be computed again. Exact mode is decoder_floor =
// decoder_start = 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tensor/dtype.h"

namespace fathom::model {

struct Segment {
  std::byte* state = nullptr;  // STATE slot (StateLayout); read and written
  const std::byte* const* blocks =
      nullptr;        // PAGES: blocks that cover the positions up to the end; written
  int64_t start = 0;  // position of the first row
  int32_t num_rows = 0;
  std::span<const int32_t> ids;             // [num_rows] token ids
  std::span<const uint8_t> is_image;        // [num_rows] 1 inside an image span; empty: none
  std::span<const Bf16* const> embeddings;  // [num_rows] rows of [hidden] or nullptr; empty: none
  int64_t pages_from = 0;     // rows below write windows only (encoder replay after a prefix hit)
  int64_t window_floor = 0;   // encoder layers read no window row below
  int64_t decoder_floor = 0;  // decoder layers neither compute nor read a row below
  int64_t decoder_start =
      0;  // decoder layers run from the segment that ends at or after this position
  int32_t num_logits = 0;  // logits of the last so many decoder rows
};

struct Batch {
  std::vector<Segment> segments;
};

// Sees, and may replace, the residual stream around every layer.  For tests (forced layers) and
// traces.
class LayerProbe {
 public:
  struct Rows {
    int64_t num_rows;
    std::span<const int64_t> positions;  // [num_rows]
    std::span<Bf16> x;                   // [num_rows, copies, hidden]
    std::span<float> pre;                // [num_rows, copies]
  };
  virtual ~LayerProbe() = default;
  // Before layer `layer`, its Engram included.
  virtual void before_layer(int32_t layer, const Rows& rows) = 0;
  virtual void after_layer(int32_t layer, const Rows& rows) = 0;
  // Rows an index layer chose: chosen[r * topk .. + num_chosen[r]).
  virtual void chosen(int32_t layer, std::span<const int32_t> rows,
                      std::span<const int32_t> num_chosen, int64_t topk) = 0;
  // Experts a layer routed to: experts[r * k .. + k) of row r.
  virtual void routed(int32_t /*layer*/, std::span<const int32_t> /*experts*/) {}
};

}  // namespace fathom::model
