// From the rows of logits of a step to what is sampled from them: tokens that were drawn where the
// logits are, or the logits.

#include <algorithm>

#include "runner/local_executor.h"

namespace fathom::runner {

// Of the rows of a segment those that tokens come from.
std::span<const RowChoice> LocalExecutor::sampled_rows(const SegmentPlan& plan,
                                                       std::span<const RowChoice> rows) const {
  return plan.continues ? rows : rows.last(1);
}

// Fills rows_, and waits for the forward.
Status LocalExecutor::take_rows(const StepPlan& plan) {
  rows_.assign(static_cast<size_t>(model::Model::num_logit_rows(batch_)), {});
  draws_.clear();
  drawn_rows_.clear();
  shown_rows_.clear();
  size_t first = 0;  // row of the segment
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const SegmentPlan& s = plan.segments[i];
    const auto num_rows = static_cast<size_t>(batch_.segments[i].num_logits);
    Slot& slot = slots_[static_cast<size_t>(s.slot)];
    const size_t num_sampled = !s.sample     ? 0
                               : s.continues ? num_rows
                                             : std::min<size_t>(1, num_rows);
    for (size_t r = 0; r < num_rows; ++r) {
      const size_t row = first + r;
      RowUse use = s.prompt_logprobs >= 0 ? RowUse::kLogits : RowUse::kNone;
      if (r + num_sampled >= num_rows && use == RowUse::kNone) {
        const auto behind = static_cast<int32_t>(r + num_sampled - num_rows);
        const int64_t position = s.continues ? slot.position + 1 + behind : s.end();
        use = sampler_.use_of(slot, position, behind, s.continues ? -1 : s.forced_token, draws_);
      }
      if (use == RowUse::kDraw) drawn_rows_.push_back(static_cast<int64_t>(row));
      if (use == RowUse::kLogits) shown_rows_.push_back(static_cast<int64_t>(row));
    }
    first += num_rows;
  }
  drawn_.resize(drawn_rows_.size());
  const size_t num_measured = draws_.with_logprobs.size();
  const auto num_top = static_cast<size_t>(draws_.num_top);
  FATHOM_TRY(show_rows());
  for (size_t k = 0; k < num_measured; ++k) {
    const auto drawn = static_cast<size_t>(draws_.with_logprobs[k]);
    RowChoice& row = rows_[static_cast<size_t>(drawn_rows_[drawn])];
    row.logprobs = std::span(logprobs_.values).subspan(k * (1 + num_top), 1 + num_top);
    row.top = std::span(logprobs_.top).subspan(k * num_top, num_top);
  }
  // The few that the device leaves to the host; what it has seen before comes again.
  draws_.clear();
  const size_t num_shown = shown_rows_.size();
  for (size_t k = 0; k < drawn_rows_.size(); ++k) {
    rows_[static_cast<size_t>(drawn_rows_[k])].token = drawn_[k];
    if (drawn_[k] == kernels::kRowUndecided) shown_rows_.push_back(drawn_rows_[k]);
  }
  return shown_rows_.size() == num_shown ? Status() : show_rows();
}

// Draws what draws_ has, and brings the rows of shown_rows_.
Status LocalExecutor::show_rows() {
  shown_.resize(shown_rows_.size());
  FATHOM_TRY(model_.take(draws_, drawn_rows_, drawn_, shown_rows_, shown_, &logprobs_));
  for (size_t k = 0; k < shown_rows_.size(); ++k) {
    rows_[static_cast<size_t>(shown_rows_[k])].logits = {
        shown_[k], static_cast<size_t>(model_.config().vocab_size)};
  }
  return Status();
}

}  // namespace fathom::runner
