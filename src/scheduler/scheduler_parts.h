// The scheduler's inside: one struct, its functions in one file a concern.
//   scheduler.cc   the public face, cancel, statistics
//   planning.cc    plan(): decodes, chunks, segments, saves
//   drafting.cc    how many drafts a step checks, what became of them
//   admission.cc   queue, where a sequence starts, forks
//   leaving.cc     preemption, ends, release of blocks and slots
//   apply.cc       results
//   integrity.cc   check_integrity()
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "kvcache/block_pool.h"
#include "kvcache/resume_points.h"
#include "scheduler/cost_model.h"
#include "scheduler/draft_counts.h"
#include "scheduler/draft_sizing.h"
#include "scheduler/scheduler.h"
#include "scheduler/sequence_state.h"

namespace fathom::scheduler {

// Rows of a sequence in a step in flight.
struct RowWork {
  Sequence* sequence;
  SlotId slot;
  int64_t end;  // position after the last row; if it continues, the least
  bool sample, continues;
  int32_t num_drafts;  // that may be accepted
};

enum class SaveKind { kResumePoint, kPreemption, kFork };

// An image that a step in flight saves.
struct SaveWork {
  Sequence* sequence;
  ImageId image;
  SaveKind kind;
  bool decoder_windows;
};

struct StepRecord {
  int64_t step = 0;
  int64_t num_rows = 0;         // without those of drafts
  int64_t num_draft_rows = 0;   // at most
  int64_t num_decodes = 0;      // segments of one row and drafts
  int64_t num_window_rows = 0;  // of the decoder alone, see take_window
  std::vector<RowWork> rows;
  std::vector<SaveWork> saves;
};

// What a sequence gets in the plan being made.
struct NextRows {
  int64_t end;  // as RowWork::end
  bool continues = false;
  int32_t num_drafts = 0;
};

// Where a sequence can start, and the references taken for it.
struct StartPoint {
  std::vector<BlockId> found;  // the longest cached prefix

  int64_t position = 0;  // first row to compute
  int64_t pages_from = 0;
  ImageId image = 0;  // STATE at `position`; 0: from nothing
  int64_t window_floor = 0;
  bool is_own_image = false;
};

struct Scheduler::Impl {
  explicit Impl(const SchedulerOptions& options);

  // planning.cc
  void make_plan(StepPlan& plan);
  void sort_running();
  void plan_closing_saves(StepPlan& plan);
  void plan_decodes(StepPlan& plan);
  void plan_chunks(StepPlan& plan);
  int64_t chunk_budget() const;
  int64_t chunk_end(const Sequence& s, int64_t num_rows) const;
  // Bounded replay runs the decoder on a prompt's last window, in the step of its last row: a
  // prompt that needs few rows has more there, and they count as rows of the step.  The first such
  // prompt of a step always has room, so the decoder has up to a window, and a row a slot, more
  // than step_tokens.  False: rows [from, end) do not come in this step, as far as they end it.
  bool take_window(Sequence& s, int64_t from, int64_t end);
  int64_t decoder_room() const;
  bool take_block_for_next_row(Sequence& s, StepPlan& plan);
  void add_segment(Sequence& s, const NextRows& rows, StepPlan& plan);
  void add_blocks(Sequence& s, SegmentPlan& segment, int64_t end, StepPlan& plan);
  void add_saves_after(Sequence& s, int64_t end, bool is_last, StepPlan& plan);
  ImageId add_save(Sequence& s, SaveKind kind, bool decoder_windows, StepPlan& plan);

  // drafting.cc
  void size_drafts(StepPlan& plan);
  int32_t drafts_of(const Sequence& s) const;
  void add_continuation(Sequence& s, StepPlan& plan);
  int32_t next_drafts(const Sequence& s) const;
  void take_drafts(const StepRecord& record, const StepResult& result);

  // admission.cc
  void enqueue(Sequence& s);
  void dequeue(Sequence& s);
  Sequence* first_waiting() const;
  // One block more than the known tokens take, so that it does not have to leave at once.
  int64_t blocks_to_start(const Sequence& s) const;
  bool is_blocked(const Sequence& s) const;
  // How many may start in the step being planned, if all were like the first.
  int64_t most_starts() const;
  void admit_waiting(StepPlan& plan);
  bool admit(Sequence& s, StepPlan& plan);
  StartPoint fork_start(const Sequence& s);
  StartPoint find_start(Sequence& s);

  void find_resume_point(Sequence& s, StartPoint& start);
  void replay_windows(const Sequence& s, StartPoint& start) const;

  void start(Sequence& s, const StartPoint& start, StepPlan& plan);
  // A follower that starts no longer needs its leader; a leader that cannot help lets all go.
  void detach_from_leader(Sequence& s);
  void detach_followers(Sequence& s);

  // leaving.cc
  void preempt(Sequence& s, StepPlan& plan);
  void end(Sequence& s);
  void leave_running(Sequence& s);
  void release_memory(Sequence& s);
  void settle(Sequence& s);
  void destroy(Sequence& s);
  void drop_own_image(Sequence& s);
  void pass_on_followers(Sequence& s);

  // apply.cc
  void apply(const StepResult& result, std::vector<TokenEvent>& events);
  void apply_rows(const StepRecord& record, const StepResult& result,
                  std::vector<TokenEvent>& events);
  void apply_tokens(const RowWork& work, std::span<const SampledToken> tokens,
                    std::vector<TokenEvent>& events);
  void take_token(Sequence& s, const SampledToken& token, std::vector<TokenEvent>& events);
  void fail(Sequence& s, const Status& error, std::vector<TokenEvent>& events);
  TokenEvent make_event(Sequence& s) const;
  void publish(Sequence& s);
  void apply_saves(const StepRecord& record, const StepResult& result);
  void apply_save(const SaveWork& save, int64_t bytes);
  void forward_prompt_logprobs(const StepRecord& record, const StepResult& result);
  void touch(Sequence& s);

  // integrity.cc
  void check_integrity() const;
  void check_sequence(const Sequence& s) const;

  int64_t blocks_for(int64_t num_tokens) const {
    return (num_tokens + options.block_tokens - 1) / options.block_tokens;
  }
  // Orders by class and arrival; see scheduler.h.
  int64_t class_of(const Sequence& s) const {
    return s.spec.priority - (step - s.arrival_step) / options.age_boost_steps;
  }
  bool keeps_resume_points(const Sequence& s) const {
    return options.prefix_cache && point_budget_bytes > 0 &&
           image_bytes[s.is_exact()] <= point_budget_bytes;
  }

  SchedulerOptions options;
  int64_t point_budget_bytes, own_budget_bytes, own_bytes = 0;
  kvcache::BlockPool pool;
  kvcache::ResumePoints points;
  CostModel cost;
  DraftSizing sizing;
  DraftCounts draft_counts;

  std::unordered_map<int64_t, std::unique_ptr<Sequence>> sequences;  // by arrival; owns
  std::unordered_map<RequestId, std::vector<Sequence*>> requests;
  std::map<int32_t, std::map<int64_t, Sequence*>> waiting;  // by priority, arrival
  int64_t num_waiting = 0;
  std::vector<Sequence*> running;     // in order at the time of the last plan
  std::vector<Sequence*> closing;     // ended; an image of their STATE is wanted
  std::vector<SlotId> free_slots;     // used from the back
  std::vector<ImageId> drops;         // for the next plan
  std::vector<StepRecord> in_flight;  // oldest first
  StepRecord record;                  // of the plan being made
  std::vector<StepRecord> spare;      // records that keep their memory
  std::vector<Sequence*> touched;     // by the result being applied
  std::vector<PromptLogprobEvent> prompt_logprobs;
  std::vector<RequestId> started;
  std::vector<std::pair<int64_t, Sequence*>> order;  // scratch of sort_running
  std::vector<Sequence*> decoding;                   // in the plan being made
  std::vector<DraftOffer> offers;                    // scratch of size_drafts
  DraftSize draft_size;                              // of the plan being made

  int64_t step = 0;
  int64_t next_arrival = 0;
  ImageId next_image = 1;
  int64_t image_bytes[2] = {};  // smallest image seen without and with decoder windows; 0: none yet
  int64_t blocked_arrival = -1;  // the head of the queue that did not fit when blocks were ...
  int32_t blocked_free = 0;      // ... so many
  int32_t num_preempting = 0;    // sequences in Phase::kPreempted
  int32_t num_releasing = 0;     // sequences that left and still hold blocks
  SchedulerStats stats;
};

}  // namespace fathom::scheduler
