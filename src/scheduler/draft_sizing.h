// How many drafts a step checks, and whether drafts are worth making: whatever is expected to give
// the most tokens a second (docs/spec/model.md 8.5).
//
// Expected tokens come from the drafts' confidences, corrected by how often drafts were accepted
// lately; seconds from what steps and drafting cost, measured or learned. Nothing here knows a
// token's value.
//
// Beside prompts the most tokens a second is not all: what drafts bring early would come later, in
// steps of all sequences, and the rows that they take from prompts are computed later too. There
// they may cost little more than that is worth.
//
// Thread: engine.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/cost_table.h"
#include "core/draft_choice.h"
#include "scheduler/cost_model.h"

namespace fathom::scheduler {

struct DraftSizingOptions {
  bool fixed = false;    // every draft is checked, and drafts are always made
  int64_t window = 128;  // rows of a draft window: positions that a draft is made from
  StepCosts costs = {};
};

// A step that is being planned.
struct DraftLoad {
  std::span<const DraftOffer> offers;  // of the sequences that may have drafts checked
  int64_t num_decodes = 0;             // all sequences that get a token, these among them
  int64_t num_chunk_rows = 0;          // rows of prompts beside them, were there no drafts
  int64_t num_later = 0;               // sequences that decode when these prompts are done
  int64_t room = 1 << 30;              // rows of prompts and drafts that the step has
  int64_t context = 0;                 // mean positions of a decoding sequence
};

struct DraftSize {
  int64_t capacity = -1;   // drafts to check; < 0: all
  bool makes_next = true;  // whether the step makes drafts for the next one
  bool keeps_rows = true;  // whether its rows are kept for drafts that are made later
};

// A step that ran.
struct DraftStep {
  int64_t num_rows = 0;    // of decodes and drafts
  int64_t num_makers = 0;  // sequences that drafts were made for
  int64_t context = 0;
  bool has_chunks = false;
  double seconds = 0;        // without making drafts
  double draft_seconds = 0;  // for these
};

class DraftSizing {
 public:
  explicit DraftSizing(const DraftSizingOptions& options);

  DraftSize choose(const DraftLoad& load);
  // What to expect of a draft that nothing is known of yet.
  float usual_confidence(int32_t position) const;
  // What came of drafts by what their confidences promised.
  double correction() const;

  // Drafts that were made, and what became of those that were checked.  Where their window lacked
  // rows, which it will not for long, that counts only while little is known.
  void add_offer(const DraftOffer& offer);
  void add_outcome(const DraftOffer& offered, int32_t num_verified, int32_t num_accepted);
  void add_step(const DraftStep& step);

 private:
  // A load as it is weighed: how many have how many drafts, not which.
  struct Weighed {
    int64_t num_decodes, num_chunk_rows, room, context;
    std::array<int64_t, kMaxDrafts> num_with = {};  // [i]: of sequences with more than i drafts
    int64_t num_drafts() const;                     // that there is room for
  };
  struct Best {
    int64_t capacity;  // drafts to check
    double rate;       // tokens a second of the best number, which may be less
  };
  static Weighed now(const DraftLoad& load);
  static Weighed later(const DraftLoad& load, const Weighed& now);
  Best best(const Weighed& load, std::span<const float> survivals) const;
  double loss(const Weighed& load, double tokens, int64_t num_drafts) const;
  double decode_s(const Weighed& load, int64_t num_drafts) const;
  // Of what takes the same time however many drafts are checked: prompts, and making the next ones.
  double other_s(const Weighed& load) const;
  double tokens(const Weighed& load, double survivals, int64_t num_drafts) const;
  std::span<const float> usual_survivals(const Weighed& load);
  bool can_pay(const Weighed& load, double plain) const;
  DraftSize trial(const DraftLoad& load, int64_t num_drafts);
  DraftSize probe(const DraftLoad& load, int64_t capacity, bool may_pay);
  DraftSize check(const DraftLoad& load, int64_t capacity, bool makes);

  DraftSizingOptions options_;
  CostModel chunks_, decodes_, rounds_;
  DraftChooser chooser_;
  std::vector<float> usual_survivals_;  // scratch
  double token_s_ = 0;  // of the load being looked at: what a token costs when its prompts are done
  // Fading means of confidence, by position.
  std::array<float, kMaxDrafts> usual_;
  float usual_weight_ = 0;  // offers that they are made of
  // Fading sums: survivals of checked drafts, how many did, and the variance of that.
  struct Outcomes {
    double expected = 0, accepted = 0, variance = 0;
    void add(const Outcomes& more);
    void fade(double share);
  };
  void learn_outcomes();
  Outcomes outcomes_, latest_, new_;  // new: since the last step was sized
  int32_t num_new_ = 0;               // drafts
  int64_t num_steps_ = 0;             // with offers
  int64_t num_added_ = 0;             // that ran, without prompts
  bool is_paused_ = false;            // drafts would not pay
  int64_t num_offers_ = 0;            // sequences that drafts were made for
  int64_t probe_every_ = 0, since_probe_ = 0;
  int64_t num_waits_ = 0;     // steps in a row whose prompts kept drafts away
  bool made_before_ = false;  // the step before made drafts
  bool looks_ = false;        // and these are to be checked, worth it or not
  bool keeps_rows_ = true;
};

}  // namespace fathom::scheduler
