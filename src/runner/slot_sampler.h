// Draws the tokens of slots: one behind a row, several behind the rows of a verification, and
// drafts, all by the same rules and with the noise of the token's position.
//
// A draft is drawn from the draft model's logits as the token at its place would be from the
// target's: the same filters, penalties, masks and noise.  It is accepted if the target draws it
// too (design rule 5), so what comes out does not depend on drafts, and no distribution is kept.
//
// Thread: one (rank-0).
#pragma once

#include <functional>
#include <span>

#include "runner/slot.h"
#include "sampler/sampler.h"

namespace fathom::runner {

// For benchmarks only, which measure the speed of a given acceptance.
struct AcceptHook {
  // How many of the `num_drafts` of a step count as accepted, whatever the target drew.
  std::function<int32_t(SlotId slot, int32_t num_drafts)> accept = nullptr;
  float confidence = 0;  // of every draft, whatever the draft module says
};

// What the model says of the rows of a segment: logits, or only their likeliest tokens.
struct RowChoices {
  std::span<const float> logits;       // [rows, vocab]
  std::span<const int32_t> likeliest;  // [rows]; empty: logits it is

  RowChoices rows(size_t first, size_t n, size_t vocab) const {
    if (likeliest.empty()) return {logits.subspan(first * vocab, n * vocab), {}};
    return {{}, likeliest.subspan(first, n)};
  }
};

class SlotSampler {
 public:
  SlotSampler(int32_t vocab_size, AcceptHook accept_hook);

  // The token at `position`, behind a row with these logits; `forced` >= 0: that token.
  SampledToken sample(Slot& slot, SlotId id, int64_t position, const RowChoices& row,
                      int32_t forced);
  // The tokens behind the rows of the newest token and of the first `num_drafts` drafts: those that
  // were accepted and one more, or fewer if the answer ends, appended to `tokens`.  Moves
  // slot.position behind the rows whose tokens came, and ends the drafts. Returns how many drafts
  // were accepted.
  int32_t verify(Slot& slot, SlotId id, int32_t num_drafts, const RowChoices& rows,
                 std::vector<SampledToken>& tokens);
  // The next draft, behind those in slot.drafts, which it joins; -1: there is none.
  int32_t draft(Slot& slot, std::span<const float> logits);
  // Whether sample() and verify() need no logits, only the likeliest tokens.
  static bool samples_likeliest(const Slot& slot) {
    return drafts_likeliest(slot) && slot.params.logprobs < 0;
  }
  // Whether draft() takes the likeliest token of any logits, from now to the round's end.
  static bool drafts_likeliest(const Slot& slot);
  // As draft(), of such a slot.
  static int32_t draft_likeliest(Slot& slot, int32_t token);

 private:
  Result<sampler::Sample> draw(Slot& slot, int64_t position, const RowChoices& row,
                               int32_t num_drafts, bool with_logprobs);
  static SampledToken note_error(Slot& slot, SampledToken out, Status error);
  static void note_token(Slot& slot, int32_t token);
  static bool drafts_end(const Slot& slot);
  static int32_t add_draft(Slot& slot, int32_t token);
  static bool ends(const Slot& slot, size_t index, int32_t token);

  size_t vocab_size_;
  sampler::Sampler sampler_;
  AcceptHook accept_hook_;
};

}  // namespace fathom::runner
