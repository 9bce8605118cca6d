// Percentiles of what was measured.
#pragma once

#include <string_view>
#include <vector>

#include "json_writer.h"

namespace fathom::app {

// Nearest rank: the least value that at least so many percent of all do not exceed; 0 of none.
struct Percentiles {
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
};

Percentiles percentiles(std::vector<double> values);

// {"p50", "p90", "p99"}
void write_percentiles(JsonWriter& json, const Percentiles& values);

}  // namespace fathom::app
