#include "percentiles.h"

#include <algorithm>
#include <cmath>

namespace fathom::app {

Percentiles percentiles(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&values](double share) {
    const double rank = std::ceil(share * static_cast<double>(values.size()));
    return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
  };
  return {at(0.5), at(0.9), at(0.99)};
}

void write_percentiles(JsonWriter& json, const Percentiles& values) {
  json.begin_object().member("p50", values.p50).member("p90", values.p90);
  json.member("p99", values.p99).end_object();
}

}  // namespace fathom::app
