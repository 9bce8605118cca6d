// Which drafts get rows in a step that has not room for all: one rule for the plan, which sizes the
// step by it, and for the executor, which fills it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "fathom/sampling_params.h"

namespace fathom {

// More than any model drafts.
inline constexpr int32_t kMaxDrafts = SamplingParams::kMostDrafts;

// The drafts of one sequence, and for each the chance, as far as the model can tell, that it is
// accepted if those before it are.
struct DraftOffer {
  int32_t num = 0;
  std::array<float, kMaxDrafts> confidence = {};  // of the first `num`; in [0, 1]
  // No row of the draft window that they were made from was missing (docs/spec/model.md 8.3).
  bool has_whole_window = true;
};

// Fills rows with the drafts that are likeliest to be accepted, over all sequences.  A draft
// survives with the product of the confidences up to it, so it never comes before those that it
// follows. Of equals the earlier position comes first, then the earlier offer.  Token values play
// no part: a choice that knew them would change what is drawn.
//
// Thread: one.  Keeps its memory from call to call.
class DraftChooser {
 public:
  // The chances of all drafts to survive, from the likeliest down; valid until the next call.
  std::span<const float> rank(std::span<const DraftOffer> offers);
  // chosen[i]: how many leading drafts of offers[i] are among the first `capacity` of that ranking;
  // capacity < 0: all.
  void choose(std::span<const DraftOffer> offers, int64_t capacity, std::span<int32_t> chosen);

 private:
  struct Candidate {
    float survival;
    int32_t offer;
  };
  void collect(std::span<const DraftOffer> offers);
  void sort();

  std::vector<Candidate> candidates_, sorted_;
  std::vector<float> survivals_;
};

}  // namespace fathom
