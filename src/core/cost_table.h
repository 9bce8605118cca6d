// How long a step takes by its number of rows, as measured: plain numbers that can be kept.
#pragma once

#include <cstdint>
#include <vector>

namespace fathom {

struct CostPoint {
  int64_t rows = 0;
  double seconds = 0;
  friend bool operator==(const CostPoint&, const CostPoint&) = default;
};

// By rows, which rise; seconds do not fall (whoever makes one sees to that). Empty: not measured.
using CostTable = std::vector<CostPoint>;

}  // namespace fathom
