// From a plan to the model's batch.

#include <algorithm>

#include "base/check.h"
#include "model/engram_hash.h"
#include "model/state_image.h"
#include "runner/local_executor.h"

namespace fathom::runner {

// How many drafts of each segment have rows in this step: as many as there are, the plan has room
// for, and the answer.
void LocalExecutor::choose_drafts(const StepPlan& plan) {
  offers_.clear();
  for (const SegmentPlan& s : plan.segments) {
    if (!s.continues) continue;
    const Slot& slot = slots_[static_cast<size_t>(s.slot)];
    offers_.push_back(slot.offer);
    offers_.back().num = std::max(
        0, std::min({s.num_drafts, static_cast<int32_t>(slot.drafts.size()), slot.num_left() - 1}));
  }
  chosen_drafts_.resize(offers_.size());
  chooser_.choose(offers_, plan.draft_capacity, chosen_drafts_);
  num_drafts_.clear();
  auto next = chosen_drafts_.begin();
  for (const SegmentPlan& s : plan.segments) num_drafts_.push_back(s.continues ? *next++ : 0);
}

void LocalExecutor::bind_ids(const StepPlan& step, const SegmentPlan& plan, int32_t num_drafts) {
  Slot& slot = slots_[static_cast<size_t>(plan.slot)];
  std::span<const int32_t> ids = step.ids_of(plan);
  if (plan.continues) {
    ids = ids.first(slot.num_left() > 0 ? 1 : 0);
  } else {
    slot.end_drafts(0);
  }
  slot.ids.assign(ids.begin(), ids.end());
  for (int32_t& id : slot.ids) {
    if (id == kPendingToken) id = slot.last_token;
  }
  slot.ids.insert(slot.ids.end(), slot.drafts.begin(), slot.drafts.begin() + num_drafts);
}

model::Segment LocalExecutor::bind(const StepPlan& step, const SegmentPlan& plan,
                                   int32_t num_drafts) {
  Slot& slot = slots_[static_cast<size_t>(plan.slot)];
  if (slot.is_failed) return {};
  bind_ids(step, plan, num_drafts);
  for (const BlockId block : step.blocks_of(plan)) {
    slot.blocks.push_back(storage_->block(block));
  }
  if (slot.pending_image != nullptr) {
    const auto info = model::inspect_state_image(model_.config(), *slot.pending_image);
    FATHOM_CHECK(info.has_value()) << info.error().message();
    slot.position = info->position;
    slot.draft_rows = {info->draft_floor, info->position};
    model::restore_state(model_.config(), model_.state_layout(), model_.kv_layout(),
                         model_.stream(), *slot.pending_image, slot.state.data(),
                         slot.blocks.data());
    slot.pending_image = nullptr;
  }
  if (slot.position == 0 && plan.start > 0) begin_at(slot, plan.start);
  model::Segment s;
  s.state = slot.state.data();
  s.blocks = slot.blocks.data();
  s.start = plan.continues ? slot.position : plan.start;
  s.num_rows = static_cast<int32_t>(slot.ids.size());
  s.ids = slot.ids;
  s.pages_from = plan.pages_from;
  s.window_floor = plan.window_floor;
  s.decoder_floor = plan.decoder_floor;
  s.decoder_start = plan.decoder_start;
  const bool all_logits = plan.continues || plan.prompt_logprobs >= 0;
  s.num_logits = all_logits ? s.num_rows : plan.sample ? 1 : 0;
  bind_media(slot, s);
  return s;
}

// A slot that starts at window_floor > 0 without an image: windows begin empty there, and what is
// left of the rows before are the Engram ids.
void LocalExecutor::begin_at(Slot& slot, int64_t position) {
  const int64_t first = std::max<int64_t>(0, position - model::StateLayout::kHistory);
  std::vector<int32_t>& ids = slot.ids_before;
  ids.clear();
  for (int64_t p = first; p < position; ++p) {
    const bool is_prompt = p < std::ssize(slot.prompt);
    ids.push_back(is_prompt ? slot.prompt[static_cast<size_t>(p)]
                            : slot.output[static_cast<size_t>(p - std::ssize(slot.prompt))]);
    for (const MediaSegment& m : slot.media) {
      if (p >= m.position && p < m.position + m.num_tokens) ids.back() = model::kDeadId;
    }
  }
  model_.set_history(slot.state.data(), position, ids);
}

// Marks the segment's rows inside images, and gives them their embeddings.
void LocalExecutor::bind_media(Slot& slot, model::Segment& segment) {
  const int64_t end = segment.start + segment.num_rows;
  bool any = false, any_given = false;
  for (const MediaSegment& m : slot.media) {
    const int64_t first = std::max(m.position, segment.start);
    const int64_t last = std::min(m.position + m.num_tokens, end);
    if (first >= last) continue;
    if (!any) slot.is_image.assign(static_cast<size_t>(segment.num_rows), 0);
    if (!any) slot.embeddings.assign(static_cast<size_t>(segment.num_rows), nullptr);
    any = true;
    any_given |= m.embeddings != nullptr;
    for (int64_t p = first; p < last; ++p) {
      const auto row = static_cast<size_t>(p - segment.start);
      slot.is_image[row] = 1;
      if (m.embeddings == nullptr) continue;
      const size_t width = m.embeddings->size() / static_cast<size_t>(m.num_tokens);
      const uint16_t* values = m.embeddings->data() + static_cast<size_t>(p - m.position) * width;
      slot.embeddings[row] = reinterpret_cast<const Bf16*>(values);
    }
  }
  if (any) segment.is_image = slot.is_image;
  if (any_given) segment.embeddings = slot.embeddings;
}

}  // namespace fathom::runner
