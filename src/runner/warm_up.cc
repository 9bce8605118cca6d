#include "runner/warm_up.h"

#include <algorithm>

#include "base/check.h"

namespace fathom::runner {
namespace {

class Runs {
 public:
  Runs(Executor& executor, const WarmUp& w) : executor_(executor), w_(w) {}

  // Starts where nothing was computed: the windows begin empty there, and what the blocks before
  // hold is read but does not matter.
  Status prompt() {
    const int64_t end =
        std::max<int64_t>(1, std::min(w_.max_context, int64_t{w_.num_blocks} * w_.block_tokens));
    const int64_t rows = std::min<int64_t>(w_.max_rows, end);
    StepPlan plan;
    SlotStart& start = plan.starts.emplace_back();
    start.slot = 0;
    start.max_tokens = 1;
    start.prompt.resize(static_cast<size_t>(end));
    for (int64_t i = 0; i < end; ++i) start.prompt[static_cast<size_t>(i)] = id(i);
    SegmentPlan& segment = plan.segments.emplace_back();
    segment.slot = 0;
    segment.start = segment.window_floor = end - rows;
    segment.num_rows = static_cast<int32_t>(rows);
    plan.ids.assign(start.prompt.end() - rows, start.prompt.end());
    segment.num_blocks = static_cast<int32_t>((end + w_.block_tokens - 1) / w_.block_tokens);
    for (BlockId block = 0; block < segment.num_blocks; ++block) plan.blocks.push_back(block);
    segment.sample = true;
    segment.prompt_logprobs = 0;
    return run(plan);
  }

  // Two steps of all slots, the second with drafts.  Sequences share blocks where there are few.
  Status decode(float temperature) {
    StepPlan plan;
    for (SlotId slot = 0; slot < w_.num_slots; ++slot) {
      SlotStart& start = plan.starts.emplace_back();
      start.slot = slot;
      start.max_tokens = w_.block_tokens;
      start.params.temperature = temperature;
      start.prompt = {id(slot)};
      SegmentPlan& segment = add_segment(slot, 1, plan);
      segment.first_block = slot;
      segment.num_blocks = 1;
      plan.ids.push_back(id(slot));
      plan.blocks.push_back(slot % w_.num_blocks);
    }
    FATHOM_TRY(run(plan));
    plan.clear();
    plan.draft_capacity = w_.max_rows - w_.num_slots;
    for (SlotId slot = 0; slot < w_.num_slots; ++slot) {
      SegmentPlan& segment = add_segment(slot, 1 + w_.max_draft, plan);
      segment.start = 1;
      segment.continues = true;
      segment.num_drafts = w_.max_draft;
      plan.ids.insert(plan.ids.end(), static_cast<size_t>(segment.num_rows), kPendingToken);
    }
    return run(plan);
  }

 private:
  SegmentPlan& add_segment(SlotId slot, int32_t num_rows, StepPlan& plan) const {
    SegmentPlan& segment = plan.segments.emplace_back();
    segment.slot = slot;
    segment.num_rows = num_rows;
    segment.first_id = static_cast<int32_t>(plan.ids.size());
    segment.sample = true;
    segment.next_drafts = w_.max_draft;
    return segment;
  }
  int32_t id(int64_t i) const { return static_cast<int32_t>(i * 7919 % w_.vocab_size); }
  Status run(const StepPlan& plan) {
    executor_.submit(plan);
    executor_.wait(result_);
    return std::move(result_.error);
  }

  Executor& executor_;
  const WarmUp& w_;
  StepResult result_;
};

}  // namespace

Status warm_up(Executor& executor, const WarmUp& limits) {
  FATHOM_CHECK(limits.num_blocks > 0 && limits.block_tokens > limits.max_draft + 1 &&
               limits.vocab_size > 0 && limits.num_slots <= limits.max_rows);
  Runs runs(executor, limits);
  FATHOM_TRY(runs.prompt());
  for (const float temperature : {0.0f, 1.0f}) FATHOM_TRY(runs.decode(temperature));
  return Status();
}

}  // namespace fathom::runner
