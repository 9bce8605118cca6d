// A draft round whose tokens are all drawn on the device, one after the other: one piece of work,
// which a GPU launches as one graph.

#include <algorithm>

#include "base/check.h"
#include "model/forward_pass.h"

namespace fathom::model {
namespace {

int32_t most_drafts(std::span<const DraftSegment> segments) {
  int32_t most = 0;
  for (const DraftSegment& s : segments) most = std::max(most, s.num_drafts);
  return most;
}

}  // namespace

// All first drafts, all second drafts, and so on.
void ForwardPass::list_draws_ahead(std::span<const DraftSegment> segments, DraftSampler& sampler) {
  draws_.clear();
  markov_at_.clear();
  anchors_.clear();
  for (const DraftSegment& s : segments) anchors_.push_back(s.anchor);
  for (int32_t i = 0; i < most_drafts(segments); ++i) {
    int64_t row = 0;
    for (size_t s = 0; s < segments.size(); row += segments[s++].num_drafts) {
      // A segment with fewer drafts goes on with its last row, and nobody looks.
      const bool is_wanted = i < segments[s].num_drafts;
      markov_at_.push_back(row + std::min(i, segments[s].num_drafts - 1));
      if (!is_wanted) draws_.rows.emplace_back();
      FATHOM_CHECK(!is_wanted || sampler.draw(s, i, draws_)) << "draft " << i << " of " << s;
    }
  }
}

void ForwardPass::draw_ahead(std::span<const DraftSegment> segments) {
  const DraftWeights& w = m_.weights_.draft;
  const int64_t n = std::ssize(segments), rank = c_.dspark_markov_rank, vocab = c_.vocab_size;
  const int64_t num_all = n * most_drafts(segments);
  const DeviceDraws draws = upload(draws_);
  const int64_t* at = stream_->upload(markov_at_.data(), num_all);
  const int32_t* ids = stream_->upload(anchors_.data(), n);
  Bf16* e = ws_.markov_e.get(num_all * rank);
  float* logits = ws_.markov_logits.get(n * vocab);
  int32_t* next = ws_.draft_ids.get(num_all);
  drawn_.resize(static_cast<size_t>(num_all));
  int32_t* tokens = stream_->output(drawn_.data(), num_all);
  for (int64_t first = 0; first < num_all; first += n) {
    ops_.run(kernels::EmbedArgs{.table = w.markov_embed,
                                .ids = ids,
                                .given = nullptr,
                                .x = e + first * rank,
                                .pre = ws_.markov_pre.get(n),
                                .num_tokens = n,
                                .copies = 1,
                                .hidden = rank,
                                .stream = stream_});
    project(e + first * rank, n, w.markov_head, logits);
    ops_.run(kernels::RowDrawArgs{.a = ws_.draft_logits.data(),
                                  .a_row = at + first,
                                  .b = logits,
                                  .draws = draws.rows + first,
                                  .masks = draws.masks,
                                  .edits = draws.edits,
                                  .tokens = tokens + first,
                                  .ids = next + first,
                                  .num_rows = n,
                                  .width = vocab,
                                  .stream = stream_});
    ids = next + first;
  }
  copies_.clear();
  int64_t row = 0;
  for (size_t s = 0; s < segments.size(); ++s) {
    for (int32_t i = 0; i < segments[s].num_drafts; ++i, ++row) {
      copies_.add(e + (i * n + static_cast<int64_t>(s)) * rank,
                  ws_.draft_judged.data() + row * w.confidence.cols + c_.hidden_size);
    }
  }
  copy_rows(copies_, rank * int64_t{sizeof(Bf16)});
  confidence_.resize(std::max(confidence_.size(), static_cast<size_t>(num_draft_rows_)));
  project_to_host(ws_.draft_judged.data(), num_draft_rows_, w.confidence, confidence_.data());
}

Status ForwardPass::take_ahead(std::span<const DraftSegment> segments, DraftSampler& sampler,
                               std::span<Draft> drafts) {
  FATHOM_TRY(stream_->synchronize());
  auto row = confidence_.begin();
  for (size_t s = 0; s < segments.size(); row += segments[s++].num_drafts) {
    for (int32_t i = 0; i < segments[s].num_drafts; ++i) {
      const int32_t drawn = drawn_[static_cast<size_t>(i) * segments.size() + s];
      const int32_t token = sampler.take(s, i, drawn);
      if (token < 0) break;
      drafts[s].tokens.push_back(token);
    }
    drafts[s].confidence.assign(row, row + std::ssize(drafts[s].tokens));
  }
  return Status();
}

}  // namespace fathom::model
