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

// What there is of a row: the token that was drawn where its logits are, or they themselves.
struct RowChoice {
  int32_t token = kernels::kRowUndecided;  // or kRowIsNan, kRowIsEmpty
  std::span<const float> logits = {};      // [vocab], if it is undecided
  // Of the token, and of the likeliest (ids, best first; -1: no more), if the request wants them.
  std::span<const float> logprobs = {};  // [1 + the size of top]
  std::span<const int32_t> top = {};
};

// What a row is for.
enum class RowUse {
  kNone,   // its token is known or of no use
  kDraw,   // a token, drawn on the device
  kLogits  // the host wants all of it
};

class SlotSampler {
 public:
  SlotSampler(int32_t vocab_size, AcceptHook accept_hook);

  // How the token at `position` comes from its row, behind the first `num_drafts` drafts (its
  // masks are filled); `forced` as of sample().  If it is drawn, `draws` gets a row more.
  RowUse use_of(Slot& slot, int64_t position, int32_t num_drafts, int32_t forced,
                model::RowDraws& draws);
  // The token at `position`, behind that row; `forced` >= 0: that token.
  SampledToken sample(Slot& slot, SlotId id, int64_t position, const RowChoice& row,
                      int32_t forced);
  // The tokens behind the rows of the newest token and of the first `num_drafts` drafts: those that
  // were accepted and one more, or fewer if the answer ends, appended to `tokens`.  Moves
  // slot.position behind the rows whose tokens came, and ends the drafts. Returns how many drafts
  // were accepted.
  int32_t verify(Slot& slot, SlotId id, int32_t num_drafts, std::span<const RowChoice> rows,
                 std::vector<SampledToken>& tokens);
  // The next draft, behind those in slot.drafts, which it joins; -1: there is none.
  int32_t draft(Slot& slot, const RowChoice& row);
  // Whether draft `i` can be drawn on the device: `draws` then gets a row more.  It is the next
  // one, or of a slot with draws_ahead().
  bool draw_draft(Slot& slot, int32_t i, model::RowDraws& draws);
  // Whether how a draft is drawn does not depend on those before it.
  static bool draws_ahead(const Slot& slot);

 private:
  Result<sampler::Sample> draw(Slot& slot, int64_t position, const RowChoice& row,
                               int32_t num_drafts, bool with_logprobs);
  // How draw() does it on the device; false: it wants the logits.
  bool add_draw(Slot& slot, int64_t position, int32_t num_drafts, int64_t num_output,
                bool with_logprobs, model::RowDraws& draws);
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
