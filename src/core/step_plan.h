// One step of the engine as plain values: what the scheduler wants computed, and what came of it.
//
// Both could cross a process border: ids, positions and numbers, no pointers.  An empty plan is
// legal.  A plan's commands are carried out in the order of the fields: starts, loads, copies, then
// the forward over the segments, sampling, then saves.
//
// The plan of step n + 1 is made while step n runs, so it may name a token that is not known yet:
// kPendingToken in `ids` stands for the token that the executor sampled last for that slot.
//
// Drafts (docs/spec/model.md 8). A sampling segment may ask for `next_drafts` guesses of the tokens
// that follow; a later segment of the slot that `continues` gives rows to some of them, behind that
// of the newest token, and gets as many tokens more as of them are what the model itself draws
// there. How many is not known when the next step is planned. So a segment that continues starts
// where its slot is; the plan says the least that this can be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/draft_choice.h"
#include "core/grammar_handle.h"
#include "fathom/request.h"
#include "fathom/status.h"

namespace fathom {

inline constexpr int32_t kPendingToken = -1;

// Indices into what the executor owns.
using SlotId = int32_t;   // a STATE slot, with the sampling state of its sequence
using BlockId = int32_t;  // a block of PAGES
using ImageId = int64_t;  // a saved STATE image in host memory; never reused

// A sequence takes a slot.  What was in the slot before is forgotten.
struct SlotStart {
  SlotId slot;
  SamplingParams params;
  uint64_t seed;
  int32_t max_tokens = 0;       // output ids that the slot will hold at most
  std::vector<int32_t> prompt;  // what repetition penalties count as the prompt
  std::vector<int32_t> output;  // tokens that were generated already (resumed sequences)
  // Cannot be chosen before the output has params.min_tokens tokens: they would end it.
  std::vector<int32_t> stop_ids = {};
  std::vector<MediaSegment> media = {};  // images in the prompt
  GrammarId grammar = 0;                 // what the output is held to; 0: nothing
};

// STATE from an image; the next segment of the slot starts at the image's position. An image also
// carries the page rows from the last block border below its position; they are written into the
// block that the slot's next segment names there, so a sequence may resume at a position P beyond
// its H cached tokens if P lies in the block after them.
struct StateLoad {
  SlotId slot;
  ImageId image;
};

// Copies a block's bytes before the forward (copy-on-write of a shared block).
struct BlockCopy {
  BlockId from;
  BlockId to;
};

struct SegmentPlan {
  SlotId slot = -1;
  int64_t start = 0;     // position of the first row; with `continues`: or beyond
  int32_t num_rows = 0;  // with `continues`: the most, 1 + num_drafts
  int32_t first_id = 0;  // of its ids in StepPlan::ids: token ids or kPendingToken
  // Its blocks in StepPlan::blocks: those that the slot's table has not yet.  The table begins
  // empty with a SlotStart and grows by these; with them it covers the segment's end.
  int32_t first_block = 0;
  int32_t num_blocks = 0;
  int64_t pages_from = 0;  // as model::Segment
  // As model::Segment. A slot may start at window_floor > 0 without an image: then windows begin
  // empty there, and the ids before it (Engram) are those of the slot's prompt.
  int64_t window_floor = 0;
  int64_t decoder_floor = 0;
  int64_t decoder_start = 0;
  bool sample = false;        // draw the token after the last row
  int32_t forced_token = -1;  // >= 0: take this token instead of drawing (its logprob is reported)
  // >= 0: log-probabilities of the ids that follow each of this segment's rows, with so many
  // alternatives.
  int32_t prompt_logprobs = -1;
  int32_t next_id = -1;  // the known id after the last row, for prompt_logprobs; -1: there is none

  // A row for the slot's newest token, at the slot's own position, and rows for its newest drafts;
  // `ids` are that token, if it is known, and pending ones; `sample` is set. The blocks cover the
  // furthest that it can come.  Drafts have no more rows than there are drafts, than
  // StepPlan::draft_capacity allows and than max_tokens leaves: a row more is one token more at
  // most.  No row at all, and no token, if the slot's answer is over: max_tokens, a stop id after
  // min_tokens, its grammar's end, an error.
  bool continues = false;
  int32_t num_drafts = 0;   // that may have rows, at most kMaxDrafts
  int32_t next_drafts = 0;  // with `sample`: drafts to make after it; 0: none

  // Not where the segment `continues`.
  int64_t end() const { return start + num_rows; }
};

// Writes STATE of a slot, as it is after the step, to host memory. Its position is the slot's: the
// rows of the segment, of one that continues those whose tokens came.
struct StateSave {
  SlotId slot;
  ImageId image;
  bool decoder_windows;  // exact mode and preemption: everything; else the encoder's share and the
                         // entrance rows
};

struct StepPlan {
  int64_t step = 0;
  std::vector<SlotStart> starts;
  std::vector<StateLoad> loads;
  std::vector<BlockCopy> copies;
  std::vector<SegmentPlan> segments;
  std::vector<int32_t> ids;     // of all segments
  std::vector<BlockId> blocks;  // of all segments
  std::vector<StateSave> saves;
  std::vector<ImageId> drops;  // images that are no longer wanted; freed before anything else
  // Rows for drafts in the whole step, at most; the likeliest get them (draft_choice.h). < 0: all.
  int32_t draft_capacity = -1;
  // Whether the step's rows are written to the draft windows. Drafts that are made behind rows that
  // were not are made from what comes after those.
  bool keeps_draft_rows = true;

  std::span<const int32_t> ids_of(const SegmentPlan& s) const {
    return std::span(ids).subspan(static_cast<size_t>(s.first_id), static_cast<size_t>(s.num_rows));
  }
  std::span<const BlockId> blocks_of(const SegmentPlan& s) const {
    return std::span(blocks).subspan(static_cast<size_t>(s.first_block),
                                     static_cast<size_t>(s.num_blocks));
  }
  // Empty; the memory of its lists is kept, so a plan that is filled again and again allocates
  // nothing.
  void clear();
};

struct SampledToken {
  SlotId slot;
  int32_t token = -1;
  float logprob = 0;
  std::vector<TokenLogprob> top = {};
  bool ends = false;  // by its grammar nothing can follow
  Status error = {};  // of this sequence only (NaN logits, everything masked)
};

// Of a sampling segment, what became of its drafts, and the next ones.
struct SlotDrafts {
  SlotId slot;
  int32_t num_verified = 0;  // that had rows in this step
  int32_t num_accepted = 0;  // of these, what the model drew too, up to the first that differs
  DraftOffer next = {};      // made after the step
};

struct SlotPromptLogprob {
  SlotId slot;
  PromptLogprob logprob;
};

struct SavedImage {
  ImageId image;
  int64_t bytes;
};

struct StepResult {
  int64_t step = 0;
  // In plan order. One a sampling segment; of one that `continues` all that were accepted and one
  // more, in order, up to the answer's end.
  std::vector<SampledToken> tokens = {};
  std::vector<SlotDrafts> drafts = {};  // of segments with drafts before or after, in plan order
  std::vector<SlotPromptLogprob> prompt_logprobs = {};
  std::vector<SavedImage> saved = {};
  double seconds = 0;        // the executor's time for the step
  double draft_seconds = 0;  // of these, for making drafts
  Status error = {};         // of the whole step: all its sequences fail with this

  void clear();  // as StepPlan::clear
};

}  // namespace fathom
