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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/row_draw/row_draw.h"
#include "kernels/row_logprobs/row_logprobs.h"
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
  // Keep the draft windows up to date (DraftRows has what is there): rounds read the rows of
  // batches with it.
  bool keep_draft_rows = false;
};

// How tokens are drawn where the logits are (kernels/row_draw), row by row.  Keeps its memory.
struct RowDraws {
  std::vector<kernels::RowDraw> rows;
  std::vector<uint32_t> masks;  // [.., mask_words(vocab)], numbered by RowDraw::mask and edited
  std::vector<kernels::LogitEdit> edits;  // numbered by RowDraw::first_edit
  // Of the tokens of these rows (numbers in `rows`, rising) log-probabilities are wanted, and of
  // the `num_top` likeliest, at most kernels::kRowLogprobsTopMost.
  std::vector<int64_t> with_logprobs;
  int32_t num_top = 0;

  void clear() {
    rows.clear();
    masks.clear();
    edits.clear();
    with_logprobs.clear();
    num_top = 0;
  }
  // A mask of `words` words for the row that comes next, to be filled: its `mask` is the number.
  std::span<uint32_t> add_mask(size_t words, int32_t& number) {
    number = static_cast<int32_t>(masks.size() / words);
    masks.resize(masks.size() + words);
    return std::span(masks).last(words);
  }
};

// Log-probabilities of tokens that were drawn, for RowDraws::with_logprobs in order.  Keeps its
// memory.
struct DrawnLogprobs {
  std::vector<float> values;  // [.., 1 + num_top]: of the token, then of the likeliest
  std::vector<int32_t> top;   // [.., num_top]: their ids, best first; -1: there are no more
};

// Decoder layers run on the positions from here to the segment's end; its end: on none.
int64_t first_decoder_row(const Segment& segment);

// Which rows of the draft windows of a sequence are there: positions [from, end), without a gap.
struct DraftRows {
  int64_t from = 0, end = 0;

  // After a batch with keep_draft_rows.
  void add(const Segment& segment);
  // Rows at and behind `position` were taken back.
  void cut(int64_t position) { end = std::min(end, position); }
  // First row that a draft round at `position` (of its anchor) may read; `position`: none.
  int64_t floor(int64_t position) const { return end == position ? from : position; }
};

// One sequence of a draft round (docs/spec/model.md 8.3).
struct DraftSegment {
  std::byte* state = nullptr;  // STATE slot; read only
  int64_t start = 0;           // position of the anchor; all rows before it are computed
  int64_t floor = 0;           // DraftRows::floor(start)
  int32_t anchor = 0;          // token id
  int32_t num_drafts = 0;      // 1 .. Model::max_drafts()
};

// Says which token a row of logits gives: the sampling of the request, masks and noise included.
class DraftSampler {
 public:
  virtual ~DraftSampler() = default;
  // Draft i (0-based, after the tokens that were chosen before) of segment `segment`, which would
  // stand at position start + 1 + i.  -1: no draft there, and none after it.
  virtual int32_t choose(size_t segment, int32_t i, std::span<const float> logits) = 0;
  // Adds to `draws` how draft i is drawn where its logits are, if it can be: choose() then is not
  // called for it, but take().  False: nothing was added, choose() wants the logits.
  virtual bool draw(size_t /*segment*/, int32_t /*i*/, RowDraws& /*draws*/) { return false; }
  // Whether every draft of the round can be drawn so, and draw() says how before any is taken: the
  // round is then one piece of work, at the end of which take() is called for each until -1.
  virtual bool draws_ahead() const { return false; }
  // `token` was drawn, or is one of what is no token; the result is as of choose().
  virtual int32_t take(size_t /*segment*/, int32_t /*i*/, int32_t token) {
    return token < 0 ? -1 : token;
  }
};

struct Draft {
  std::vector<int32_t> tokens;
  // Logits of the confidence head, one a token: sigmoid is the chance that the target agrees, given
  // that it agreed before.
  std::vector<float> confidence;
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
