// What the scheduler remembers of one sequence.
//
// Thread: engine.  Plain data; the scheduler's parts (scheduler_parts.h) change it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/block_key.h"
#include "core/step_plan.h"
#include "scheduler/scheduler.h"

namespace fathom::scheduler {

enum class Phase {
  kAttached,   // waits for the first sample of its request to compute their common prompt
  kWaiting,    // in the queue
  kRunning,    // has a slot and blocks
  kPreempted,  // leaves its slot; goes to the queue when no step in flight names it
  kEnded,      // the same, but nothing follows
};

struct Sequence {
  SequenceSpec spec;
  std::vector<int32_t> ends;  // ids that end it: the end token, if it counts, and spec.stop_ids
  Phase phase = Phase::kWaiting;
  int64_t arrival = 0;       // order of add(); never changes
  int64_t arrival_step = 0;  // for ageing

  // Progress (design rule 1).  Positions: 0 <= applied <= planned <= num_known().  With drafts in
  // flight `num_pending`, `planned` and what follows from them are the least that can be.
  std::vector<int32_t> tokens;  // prompt and output whose ids have come back
  int64_t num_prompt = 0;
  int32_t num_pending = 0;   // tokens that steps in flight will sample
  int64_t num_maybe = 0;     // drafts that steps in flight may accept: tokens and rows more
  int64_t planned = 0;       // computed, steps in flight included
  int64_t applied = 0;       // computed by steps whose result is here
  int64_t pages_from = 0;    // PAGES of rows below were found or restored: not written
  int64_t window_floor = 0;  // see SchedulerOptions::replay_windows
  // Where its cached blocks end, if no resume point was there: another prompt went on differently,
  // and so may the next. 0: nowhere.
  int64_t branch = 0;
  int64_t planned_step = -1;  // the last step with rows of it
  int64_t window_step = -1;   // the step that runs its last window in the decoder
  bool tainted = false;       // a step with it failed: what is behind `applied` is not to be used

  int32_t max_draft = 0;  // of this sequence
  DraftOffer offer;       // its newest drafts that are known of
  int64_t num_drafted = 0, num_accepted = 0;

  // Memory.
  SlotId slot = -1;
  std::vector<BlockId> blocks;
  int64_t num_sent_blocks = 0;  // leading blocks that the executor's table has
  int64_t num_published = 0;    // leading blocks that have their key or came with one
  int32_t works_in_flight = 0;  // steps in flight with rows of it, saves in flight of its slot

  // Keys of the full blocks of `tokens`, as far as they were needed.
  BlockKey root;
  std::vector<BlockKey> keys;
  std::vector<MediaStart> media;  // of the prompt, by position

  // STATE as it was at preemption; 0: none.
  ImageId image = 0;
  int64_t image_position = 0;
  int64_t image_bytes = -1;  // -1: not saved yet

  // Parallel samples: the leader computes all of the prompt but its last token, then followers take
  // over its blocks and an image of its STATE.
  Sequence* leader = nullptr;
  std::vector<Sequence*> followers;  // that wait for this one
  bool fork_planned = false;         // the image is being saved, or was
  ImageId fork_image = 0;            // saved: followers can start

  int64_t cached_tokens = -1;     // -1: was never admitted
  int64_t recomputed_tokens = 0;  // of these, rows run again at its first start
  bool has_first_event = false;   // a client saw an event
  bool end_save_planned = false;  // an image for the end of the request
  int64_t num_resume_saves = 0;   // resume_every'th positions passed, with or without an image
  int64_t logprobs_from = 1;      // prompt log-probabilities below this position were forwarded
  bool is_touched = false;        // scratch of apply()

  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_known() const { return num_tokens() + num_pending; }
  int64_t num_output() const { return num_known() - num_prompt; }
  // Rows that can be computed now; the last token of the answer is not computed.
  int64_t rows_needed() const {
    return num_output() >= spec.max_tokens ? 0 : num_known() - planned;
  }
  // Rows that will ever be computed.
  int64_t max_rows() const { return num_prompt + spec.max_tokens - 1; }
  // The furthest that `planned` and so many rows more can be.
  int64_t furthest(int64_t num_more) const {
    return std::min(planned + num_maybe + num_more, max_rows());
  }
  // Its next row is that of a token that it generated, and the token behind is not forced: the step
  // may check drafts.
  bool can_continue() const {
    return max_draft > 0 && planned >= num_prompt &&
           num_output() >= static_cast<int64_t>(spec.forced.size());
  }
  bool wants_prompt_logprobs() const {
    return spec.prompt_logprobs >= 0 && logprobs_from < num_prompt;
  }
  bool is_exact() const { return spec.prefill == PrefillMode::kExact; }
  std::span<const int32_t> prompt() const {
    return std::span(tokens).first(static_cast<size_t>(num_prompt));
  }

  // The position where followers split off: one row before the prompt's end, because every sample
  // draws its first token from the last row itself.
  int64_t fork_position() const { return num_prompt - 1; }

  // Keys of the first `num_blocks` blocks, which must be full of known ids.
  std::span<const BlockKey> chain(int64_t num_blocks, int32_t block_tokens);
  // Key of the last block border at or before `position` (the root if there is none).
  const BlockKey& parent_key(int64_t position, int32_t block_tokens);

  // Media that begin in [from, to).
  std::span<const MediaStart> media_between(int64_t from, int64_t to) const;
  // The ids from that border to `position`.
  std::span<const int32_t> tail(int64_t position, int32_t block_tokens) const;
};

}  // namespace fathom::scheduler
