// The largest steps that plans may ask for, run once at start: so buffers of steps have their
// greatest size before the first request, and a device that has no room for them says so then.
#pragma once

#include "core/executor.h"
#include "fathom/status.h"

namespace fathom::runner {

struct WarmUp {
  int32_t max_rows = 512;  // in a step
  int32_t num_slots = 1;   // at most max_rows
  int32_t num_blocks = 0;  // that may be written: nothing in them counts yet
  int32_t block_tokens = 0;
  int64_t max_context = 0;  // positions of a sequence
  int32_t vocab_size = 0;
  int32_t window = 0;     // of the model: what prompts that end have more in the decoder
  int32_t max_draft = 0;  // as the executor has it
};

// A prompt's rows at the end of the longest context, with the log-probabilities of all, and so many
// as the decoder has when prompts end together; rows of prompts in all slots; then all slots, with
// as many rows of drafts as fit, drawn in all ways that differ in what is kept or comes to the
// host. No step may be in flight; the slots' sequences are gone afterwards.  Errors: those of a
// step.
Status warm_up(Executor& executor, const WarmUp& limits);

}  // namespace fathom::runner
