// One step of the engine as plain values: what the scheduler wants computed, and what came of it.
//
// Both could cross a process border: ids, positions and numbers, no pointers.  An empty plan is
// legal.  A plan's commands are carried out in the order of the fields: starts, loads, copies, then
// the forward over the segments, sampling, then saves.
//
// The plan of step n + 1 is made while step n runs, so it may name a token that is not known yet:
// kPendingToken in `ids` stands for the token that the executor sampled last for that slot.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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
  int64_t start = 0;  // position of the first row
  int32_t num_rows = 0;
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

  int64_t end() const { return start + num_rows; }
};

// Writes STATE of a slot, as it is after the forward, to host memory.
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
  std::vector<SampledToken> tokens = {};  // one a sampling segment, in plan order
  std::vector<SlotPromptLogprob> prompt_logprobs = {};
  std::vector<SavedImage> saved = {};
  double seconds = 0;  // the executor's time for the step
  Status error = {};   // of the whole step: all its sequences fail with this

  void clear();  // as StepPlan::clear
};

}  // namespace fathom
