#include "runner/warm_up.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/row_logprobs/row_logprobs.h"

namespace fathom::runner {
namespace {

class Runs {
 public:
  Runs(Executor& executor, const WarmUp& w) : executor_(executor), w_(w) {}

  Status one_prompt(int64_t rows, bool with_logprobs) {
    StepPlan plan;
    add_prompt(0, rows, longest(), plan);
    SegmentPlan& segment = plan.segments.back();
    if (with_logprobs) {
      segment.prompt_logprobs = 0;
    } else {  // as behind a hit of the cache, whose rows write no pages
      segment.pages_from = std::min(segment.start + 2, segment.end());
    }
    return run(plan);
  }

  // Their tables of blocks could be longer still, where all share one long prompt.
  Status prompts_of_all_slots() {
    constexpr int64_t kTokensMost = int64_t{4} << 20;  // that the plan holds
    StepPlan plan;
    for (SlotId slot = 0; slot < w_.num_slots; ++slot) {
      add_prompt(slot, w_.max_rows / w_.num_slots, std::min(longest(), kTokensMost / w_.num_slots),
                 plan);
    }
    return run(plan);
  }

  // Two steps of all slots, the second with drafts.  Sequences share blocks where there are few.
  Status decode(const SamplingParams& params) {
    StepPlan plan;
    for (SlotId slot = 0; slot < w_.num_slots; ++slot) {
      SlotStart& start = plan.starts.emplace_back();
      start.slot = slot;
      start.max_tokens = w_.block_tokens;
      start.params = params;
      start.prompt = {id(slot)};
      start.stop_ids = {id(slot + 1)};
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
  int64_t longest() const {
    return std::max<int64_t>(1, std::min(w_.max_context, int64_t{w_.num_blocks} * w_.block_tokens));
  }
  // The last rows of a prompt of `end` tokens.  It starts where nothing was computed: the windows
  // begin empty there, and what the blocks before hold is read but does not matter.
  void add_prompt(SlotId slot, int64_t most_rows, int64_t end, StepPlan& plan) const {
    const int64_t rows = std::clamp<int64_t>(most_rows, 1, end);
    SlotStart& start = plan.starts.emplace_back();
    start.slot = slot;
    start.max_tokens = 1;
    start.prompt.resize(static_cast<size_t>(end));
    for (int64_t i = 0; i < end; ++i) start.prompt[static_cast<size_t>(i)] = id(i);
    SegmentPlan& segment = add_segment(slot, static_cast<int32_t>(rows), plan);
    segment.start = segment.window_floor = end - rows;
    plan.ids.insert(plan.ids.end(), start.prompt.end() - rows, start.prompt.end());
    segment.first_block = static_cast<int32_t>(plan.blocks.size());
    segment.num_blocks = static_cast<int32_t>((end + w_.block_tokens - 1) / w_.block_tokens);
    for (BlockId block = 0; block < segment.num_blocks; ++block) plan.blocks.push_back(block);
  }
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
  FATHOM_TRY(runs.one_prompt(limits.max_rows, /*with_logprobs=*/true));
  const int64_t decoder_rows = int64_t{limits.max_rows} + limits.num_slots + limits.window;
  FATHOM_TRY(runs.one_prompt(decoder_rows, /*with_logprobs=*/false));
  FATHOM_TRY(runs.prompts_of_all_slots());
  // Greedy; drawn under a mask, with edits and log-probabilities; and from what the host makes of
  // the logits.
  SamplingParams masked, on_host;
  masked.min_tokens = limits.block_tokens;
  masked.repetition_penalty = 1.1f;
  masked.logprobs = static_cast<int32_t>(kernels::kRowLogprobsTopMost);
  on_host.logprobs = masked.logprobs + 1;
  SamplingParams greedy;
  greedy.temperature = 0;
  for (const SamplingParams& params : {greedy, masked, on_host}) FATHOM_TRY(runs.decode(params));
  return Status();
}

}  // namespace fathom::runner
