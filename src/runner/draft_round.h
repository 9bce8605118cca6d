// The draft round at the end of a step: for every sequence that wants drafts and goes on, what may
// follow its newest token, in one pass of the draft model over all of them.
//
// Thread: one (rank-0).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/model.h"
#include "runner/slot.h"
#include "runner/slot_sampler.h"

namespace fathom::runner {

class DraftRound : private model::DraftSampler {
 public:
  // `temperatures` (may be empty: 1) calibrate the confidence of each position: sigmoid(c / T).
  // Model, sampler and slots must outlive this.
  DraftRound(model::Model& model, SlotSampler& sampler, std::span<Slot> slots,
             std::vector<float> temperatures, const AcceptHook& hook = {});

  // After sampling: fills Slot::drafts and Slot::offer of the plan's slots.
  Status run(const StepPlan& plan);

 private:
  int32_t choose(size_t segment, int32_t i, std::span<const float> logits) override;
  bool draw(size_t segment, int32_t i, model::RowDraws& draws) override;
  bool draws_ahead() const override { return draws_ahead_; }
  int32_t take(size_t segment, int32_t i, int32_t token) override;
  float calibrated(float confidence, size_t i) const;

  model::Model& model_;
  SlotSampler& sampler_;
  std::span<Slot> slots_;
  std::vector<float> temperatures_;
  std::optional<float> confidence_;  // of a hook
  std::vector<Slot*> drafting_;
  bool draws_ahead_ = false;  // each of them
  std::vector<model::DraftSegment> segments_;
  std::vector<model::Draft> drafts_;
};

}  // namespace fathom::runner
