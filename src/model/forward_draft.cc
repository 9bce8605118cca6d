// The DSpark draft module (docs/spec/model.md 8): its window rows, made by every forward, and the
// draft round.  A stage is a layer behind the others without compressed rows; its windows come from
// the target's streams, and a block of draft rows sees them and itself, in both directions.

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "model/forward_pass.h"

namespace fathom::model {

using kernels::LinearArgs;

// Older rows than a window's are never read: a round comes after the run's end.
void ForwardPass::choose_draft_rows(const RowSet& rows) {
  draft_rows_.clear();
  draft_positions_.clear();
  for (const Run& r : rows.runs) {
    for (int64_t p = std::max(r.start, r.end() - m_.state_layout_.window()); p < r.end(); ++p) {
      draft_rows_.push_back({r.first_row + p - r.start, r.state});
      draft_positions_.push_back(p);
    }
  }
  equal_shares_.assign(static_cast<size_t>(rows.num_rows * c_.hc_mult),
                       1.0f / static_cast<float>(c_.hc_mult));
}

// The mean over the copies of the stream that enters a target layer (8.2).
void ForwardPass::capture_draft_input(int32_t layer, const RowSet& rows, const Bf16* x) {
  const auto target =
      std::find(c_.dspark_target_layers.begin(), c_.dspark_target_layers.end(), layer);
  if (target == c_.dspark_target_layers.end()) return;
  const int64_t hidden = c_.hidden_size, num_targets = std::ssize(c_.dspark_target_layers);
  const float* shares = stream_->upload(equal_shares_.data(), std::ssize(equal_shares_));
  Bf16* mean = ws_.u.get(rows.num_rows * hidden);
  hc_in(rows.num_rows, x, shares, nullptr, mean);
  Bf16* main = ws_.draft_main.get(std::ssize(draft_rows_) * num_targets * hidden) +
               (target - c_.dspark_target_layers.begin()) * hidden;
  copies_.clear();
  for (size_t i = 0; i < draft_rows_.size(); ++i) {
    copies_.add(mean + draft_rows_[i].row * hidden,
                main + static_cast<int64_t>(i) * num_targets * hidden);
  }
  copy_rows(copies_, hidden * int64_t{sizeof(Bf16)});
}

// The rows of rejected drafts are overwritten before anything reads them, as those of the layers.
void ForwardPass::store_draft_rows() {
  const DraftWeights& w = m_.weights_.draft;
  const StateLayout& layout = m_.state_layout_;
  const int64_t n = std::ssize(draft_rows_), hidden = c_.hidden_size,
                bytes = layout.window_row_bytes();
  if (n == 0) return;
  Bf16* mx = ws_.u.get(n * hidden);
  LinearArgs linear{.x = ws_.draft_main.data(),
                    .x_stride = w.main_proj.cols,
                    .num_tokens = n,
                    .quantize_input = true,
                    .num_targets = 1,
                    .targets = {},
                    .stream = stream_};
  linear.targets[0] = {.w = w.main_proj, .y = mx, .y_stride = hidden};
  ops_.run(linear);
  rms_norm(mx, w.main_norm, n, hidden, mx);

  RopeTable& rope = draft_.rope[0];
  fill_rope(draft_positions_, false, rope);
  Bf16* window = ws_.window.get(n * c_.head_dim);
  linear.x = mx;
  linear.x_stride = hidden;
  for (int32_t l = c_.num_layers; l < c_.num_layers + c_.num_draft_stages; ++l) {
    const AttentionWeights& attn = m_.weights_.layers[static_cast<size_t>(l)].attn;
    linear.targets[0] = {.w = attn.wkv, .y = window, .y_stride = c_.head_dim};
    ops_.run(linear);
    rms_norm(window, attn.kv_norm, n, c_.head_dim, window);
    ws_.row_dst.clear();
    for (size_t i = 0; i < draft_rows_.size(); ++i) {
      std::byte* ring = layout.ring(draft_rows_[i].state, l);
      ws_.row_dst.push_back(
          reinterpret_cast<uint8_t*>(ring + draft_positions_[i] % layout.ring_size() * bytes));
    }
    pack(window, rope, kernels::RowFormat::kFp8, n, 1, c_.head_dim);
  }
}

Status ForwardPass::run_draft(std::span<const DraftSegment> segments, DraftSampler& sampler,
                              std::span<Draft> drafts) {
  FATHOM_CHECK(segments.size() == drafts.size()) << segments.size() << ' ' << drafts.size();
  for (Draft& d : drafts) {
    d.tokens.clear();
    d.confidence.clear();
  }
  if (segments.empty()) return Status();
  const bool ahead = sampler.draws_ahead();
  if (ahead) list_draws_ahead(segments, sampler);
  const auto pass = [&] {
    run_stages(segments);
    draft_head(segments);
    if (ahead) draw_ahead(segments);
  };
  uint64_t shape = ahead ? 3 : 2;  // shape_of begins with 0 or 1
  const auto add = [&](uint64_t n) { shape = shape * 1099511628211u + n; };
  for (const DraftSegment& s : segments) add(static_cast<uint64_t>(s.num_drafts));
  if (ahead) add(draws_.masks.size());
  stream_->repeat(shape, pass);
  if (ahead) return take_ahead(segments, sampler, drafts);
  FATHOM_TRY(choose_drafts(segments, sampler, drafts));
  return judge_drafts(segments, drafts);
}

void ForwardPass::run_stages(std::span<const DraftSegment> segments) {
  const int64_t block = c_.dspark_block_size;
  draft_.clear();
  ids_.clear();
  for (const DraftSegment& s : segments) {
    FATHOM_CHECK(s.floor >= 0 && s.floor <= s.start) << s.floor << ' ' << s.start;
    draft_.add_block({.state = s.state,
                      .blocks = nullptr,
                      .start = s.start,
                      .first_row = 0,
                      .num_rows = block,
                      .pages_from = 0,
                      .window_floor = s.floor},
                     c_.sliding_window);
    ids_.push_back(s.anchor);
    ids_.insert(ids_.end(), static_cast<size_t>(block) - 1, c_.dspark_noise_token_id);
  }
  upload_rows(draft_);
  fill_rope(draft_.position, false, draft_.rope[0]);
  embed_rows(draft_.num_rows, nullptr);
  for (int32_t s = 0; s < c_.num_draft_stages; ++s) {
    run_layer(c_.num_layers + s, draft_, ws_.x[0].data(), ws_.pre[0].data(), nullptr);
  }
}

// Base logits of the rows that are to become drafts, those of a segment one after the other, and
// their collapsed streams, unnormed, at the front of the confidence head's input.
void ForwardPass::draft_head(std::span<const DraftSegment> segments) {
  const DraftWeights& w = m_.weights_.draft;
  const int64_t hidden = c_.hidden_size;
  num_draft_rows_ = 0;
  for (const DraftSegment& s : segments) {
    FATHOM_CHECK(s.num_drafts >= 1 && s.num_drafts <= m_.max_drafts()) << s.num_drafts;
    num_draft_rows_ += s.num_drafts;
  }
  Bf16* all = ws_.y.get(draft_.num_rows * hidden);
  hc_in(draft_.num_rows, ws_.x[0].data(), ws_.pre[0].data(), nullptr, all);
  Bf16* u = ws_.u.get(num_draft_rows_ * hidden);
  Bf16* judged = ws_.draft_judged.get(num_draft_rows_ * w.confidence.cols);
  copies_.clear();
  int64_t to = 0;
  for (size_t i = 0; i < segments.size(); ++i) {
    const int64_t first = static_cast<int64_t>(i) * c_.dspark_block_size;
    for (int64_t row = first; row < first + segments[i].num_drafts; ++row, ++to) {
      copies_.add(all + row * hidden, u + to * hidden);
      copies_.add(all + row * hidden, judged + to * w.confidence.cols);
    }
  }
  copy_rows(copies_, hidden * int64_t{sizeof(Bf16)});
  rms_norm(u, w.norm, num_draft_rows_, hidden, u);
  project(u, num_draft_rows_, m_.weights_.head,
          ws_.draft_logits.get(num_draft_rows_ * c_.vocab_size));
}

// The segments that have a draft number `i`: the Markov head's inputs for their rows, from the
// token before.  False: there is none.
bool ForwardPass::list_markov_rows(std::span<const DraftSegment> segments,
                                   std::span<const Draft> drafts, size_t i) {
  const DraftWeights& w = m_.weights_.draft;
  const int64_t rank = c_.dspark_markov_rank;
  Bf16* e = ws_.markov_e.get(std::ssize(segments) * rank);
  copies_.clear();
  markov_rows_.clear();
  int64_t row = 0;
  for (size_t s = 0; s < segments.size(); row += segments[s++].num_drafts) {
    if (drafts[s].tokens.size() < i || segments[s].num_drafts <= static_cast<int32_t>(i)) continue;
    const int32_t last = i == 0 ? segments[s].anchor : drafts[s].tokens.back();
    const int64_t at = row + static_cast<int64_t>(i);
    const uint8_t* from = w.markov_embed + last * rank * int64_t{sizeof(Bf16)};
    copies_.add(from, e + std::ssize(markov_rows_) * rank);
    copies_.add(from, ws_.draft_judged.data() + at * w.confidence.cols + c_.hidden_size);
    markov_rows_.push_back({s, at});
  }
  if (markov_rows_.empty()) return false;
  copy_rows(copies_, rank * int64_t{sizeof(Bf16)});
  return true;
}

// A chain a segment, all of them one step at a time: a token decides the Markov head's logits of
// the next.
Status ForwardPass::choose_drafts(std::span<const DraftSegment> segments, DraftSampler& sampler,
                                  std::span<Draft> drafts) {
  for (int32_t i = 0; i < m_.max_drafts(); ++i) {
    if (!list_markov_rows(segments, drafts, static_cast<size_t>(i))) break;
    const int64_t n = std::ssize(markov_rows_);
    float* logits = ws_.markov_logits.get(n * c_.vocab_size);
    project(ws_.markov_e.data(), n, m_.weights_.draft.markov_head, logits);
    markov_at_.clear();
    draws_.clear();
    for_host_.clear();
    for (size_t r = 0; r < markov_rows_.size(); ++r) {
      markov_at_.push_back(markov_rows_[r].row);
      if (sampler.draw(markov_rows_[r].segment, i, draws_)) continue;
      draws_.rows.emplace_back();  // nobody asks for its token
      for_host_.push_back(r);
    }
    drawn_.assign(markov_rows_.size(), kernels::kRowUndecided);
    if (for_host_.size() < markov_rows_.size()) {
      draw_rows(draws_, ws_.draft_logits.data(), markov_at_, logits, drawn_.data());
      FATHOM_TRY(stream_->wait());
      for (const size_t r : for_host_) drawn_[r] = kernels::kRowUndecided;
    }
    FATHOM_TRY(choose_on_host(sampler, i));
    for (size_t r = 0; r < markov_rows_.size(); ++r) {
      const size_t s = markov_rows_[r].segment;
      const int32_t token = is_chosen_[r] ? drawn_[r] : sampler.take(s, i, drawn_[r]);
      FATHOM_CHECK(token < c_.vocab_size) << token;
      if (token >= 0) drafts[s].tokens.push_back(token);
    }
  }
  return Status();
}

// The tokens of rows that are undecided, from their logits.
Status ForwardPass::choose_on_host(DraftSampler& sampler, int32_t i) {
  const int64_t vocab = c_.vocab_size;
  is_chosen_.assign(markov_rows_.size(), false);
  for_host_.clear();
  for (size_t r = 0; r < markov_rows_.size(); ++r) {
    if (drawn_[r] == kernels::kRowUndecided) for_host_.push_back(r);
  }
  if (for_host_.empty()) return Status();
  FATHOM_TRY(reserve_host_rows(2 * std::ssize(for_host_)));
  host_logits_.clear();
  for (const size_t r : for_host_) {
    const float* base = ws_.draft_logits.data() + markov_rows_[r].row * vocab;
    const float* more = ws_.markov_logits.data() + static_cast<int64_t>(r) * vocab;
    host_logits_.push_back(host_row(base, std::ssize(host_logits_)));
    host_logits_.push_back(host_row(more, std::ssize(host_logits_)));
  }
  FATHOM_TRY(stream_->wait());
  sum_.resize(static_cast<size_t>(vocab));
  for (size_t k = 0; k < for_host_.size(); ++k) {
    const size_t r = for_host_[k];
    std::transform(host_logits_[2 * k], host_logits_[2 * k] + vocab, host_logits_[2 * k + 1],
                   sum_.begin(), std::plus<float>());
    drawn_[r] = sampler.choose(markov_rows_[r].segment, i, sum_);
    is_chosen_[r] = true;
  }
  return Status();
}

// Rows that became no draft are computed along.
Status ForwardPass::judge_drafts(std::span<const DraftSegment> segments, std::span<Draft> drafts) {
  confidence_.resize(std::max(confidence_.size(), static_cast<size_t>(num_draft_rows_)));
  project_to_host(ws_.draft_judged.data(), num_draft_rows_, m_.weights_.draft.confidence,
                  confidence_.data());
  FATHOM_TRY(stream_->synchronize());
  auto row = confidence_.begin();
  for (size_t s = 0; s < segments.size(); row += segments[s++].num_drafts) {
    drafts[s].confidence.assign(row, row + std::ssize(drafts[s].tokens));
  }
  return Status();
}

}  // namespace fathom::model
