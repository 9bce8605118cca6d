// Calibration of the draft module's confidences: a temperature for each position, so that of drafts
// with confidence c a share of c is accepted (sequential temperature scaling, docs/spec/model.md
// 8.5).
//
// Thread: any; plain functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/draft_choice.h"

namespace fathom::draft {

// Drafts of one sequence in one step, with confidences at temperature 1.
struct Outcome {
  DraftOffer offer;
  int32_t num_verified = 0;
  int32_t num_accepted = 0;
  bool is_cut = false;  // the answer ended with the last accepted draft
};

struct PositionFit {
  float temperature = 1;
  int64_t num = 0;           // outcomes that say whether the draft here survived
  int64_t num_accepted = 0;  // of these, those where it did
  // Mean distance of survival from what was accepted, over ten classes of it; at temperature 1 and
  // at those that were fitted.
  double error_before = 0, error_after = 0;
};

// Fits position after position: what makes the survival up to it likeliest, those before being
// fitted.  One with fewer than `least` outcomes, or whose outcomes are all the same, takes the
// temperature before it.
std::vector<PositionFit> fit_temperatures(std::span<const Outcome> outcomes, int64_t least = 100);

// The confidence at temperature T of one that is `confidence` at temperature 1.
double at_temperature(double confidence, double temperature);

}  // namespace fathom::draft
