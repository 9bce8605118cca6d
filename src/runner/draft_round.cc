#include "runner/draft_round.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fathom::runner {

DraftRound::DraftRound(model::Model& model, SlotSampler& sampler, std::span<Slot> slots,
                       std::vector<float> temperatures, const AcceptHook& hook)
    : model_(model),
      sampler_(sampler),
      slots_(slots),
      temperatures_(std::move(temperatures)),
      drafts_(slots.size()) {
  if (hook.accept) confidence_ = hook.confidence;
}

Status DraftRound::run(const StepPlan& plan) {
  drafting_.clear();
  segments_.clear();
  draws_ahead_ = true;
  for (const SegmentPlan& s : plan.segments) {
    Slot& slot = slots_[static_cast<size_t>(s.slot)];
    // With so many drafts the target's own token behind them is the last one that may come.
    const int32_t num = std::min({s.next_drafts, model_.max_drafts(), slot.num_left() - 1});
    if (!s.sample || num <= 0) continue;
    drafting_.push_back(&slot);
    draws_ahead_ = draws_ahead_ && SlotSampler::draws_ahead(slot);
    segments_.push_back({.state = slot.state.data(),
                         .start = slot.position,
                         .floor = slot.draft_rows.floor(slot.position),
                         .anchor = slot.last_token,
                         .num_drafts = num});
  }
  const std::span<model::Draft> drafts = std::span(drafts_).first(segments_.size());
  Status status = model_.draft(segments_, *this, drafts);
  for (size_t i = 0; i < drafting_.size(); ++i) {
    Slot& slot = *drafting_[i];
    slot.output.resize(slot.output.size() - slot.drafts.size());
    const int64_t window_start = segments_[i].start - model_.config().sliding_window;
    slot.offer.has_whole_window = segments_[i].floor <= std::max<int64_t>(0, window_start);
    slot.offer.num = static_cast<int32_t>(drafts[i].confidence.size());
    for (size_t j = 0; j < drafts[i].confidence.size(); ++j) {
      slot.offer.confidence[j] = calibrated(drafts[i].confidence[j], j);
    }
  }
  return status;
}

int32_t DraftRound::choose(size_t segment, int32_t, std::span<const float> logits) {
  return sampler_.draft(*drafting_[segment], {.logits = logits});
}

bool DraftRound::draw(size_t segment, int32_t i, model::RowDraws& draws) {
  return sampler_.draw_draft(*drafting_[segment], i, draws);
}

int32_t DraftRound::take(size_t segment, int32_t, int32_t token) {
  return sampler_.draft(*drafting_[segment], {.token = token});
}

float DraftRound::calibrated(float confidence, size_t i) const {
  if (confidence_) return *confidence_;
  const float t = i < temperatures_.size() ? temperatures_[i] : 1.0f;
  return 1.0f / (1.0f + std::exp(-confidence / t));
}

}  // namespace fathom::runner
