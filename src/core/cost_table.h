// How long a step takes, as measured: plain numbers that can be kept.
#pragma once

#include <cstdint>
#include <vector>

namespace fathom {

struct CostPoint {
  int64_t rows = 0;
  double seconds = 0;
  int64_t context = 0;  // positions before the rows
  friend bool operator==(const CostPoint&, const CostPoint&) = default;
};

// By context, then rows, which rise; every context has the same rows.  Seconds fall neither with
// rows nor with context (whoever makes one sees to that).  Empty: not measured.
using CostTable = std::vector<CostPoint>;

struct StepCosts {
  CostTable chunks;   // rows of one prompt, of which only the last is sampled
  CostTable decodes;  // rows that are all sampled: tokens and drafts of running answers
  CostTable drafts;   // making drafts; a row is a sequence, whatever its context
  friend bool operator==(const StepCosts&, const StepCosts&) = default;
};

}  // namespace fathom
