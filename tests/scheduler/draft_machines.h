// What tests of DraftSizing share: machines by what they take, and offers of drafts.
#pragma once

#include <cstdint>

#include "scheduler/draft_sizing.h"

namespace fathom::scheduler {

// What a machine takes: seconds of a step by rows, and of making drafts by sequences.
struct Machine {
  double fixed, per_row, round, per_maker;
  double step(double rows) const { return fixed + per_row * rows; }
  double drafting(double makers) const { return makers > 0 ? round + per_maker * makers : 0; }
  StepCosts costs() const {
    StepCosts c;
    for (const int64_t rows : {1, 2, 4, 8, 16, 32, 64, 128, 256}) {
      c.decodes.push_back({rows, step(static_cast<double>(rows))});
      c.drafts.push_back({rows, drafting(static_cast<double>(rows))});
    }
    return c;
  }
};

inline DraftOffer offer(int32_t num, float confidence) {
  DraftOffer o{.num = num};
  o.confidence.fill(confidence);
  return o;
}

}  // namespace fathom::scheduler
