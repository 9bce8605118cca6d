#include "core/step_plan.h"

namespace fathom {

void StepPlan::clear() {
  step = 0;
  starts.clear();
  loads.clear();
  copies.clear();
  segments.clear();
  ids.clear();
  blocks.clear();
  saves.clear();
  drops.clear();
  draft_capacity = -1;
  keeps_draft_rows = true;
}

void StepResult::clear() {
  step = 0;
  tokens.clear();
  drafts.clear();
  prompt_logprobs.clear();
  saved.clear();
  seconds = 0;
  draft_seconds = 0;
  error = {};
}

}  // namespace fathom
