// How long a step takes by its number of rows, learned from the steps that ran: seconds = fixed +
// per_row * rows, least squares with exponentially fading weights.
//
// Thread: engine.
#pragma once

#include <cstdint>
#include <optional>

namespace fathom::scheduler {

class CostModel {
 public:
  void add(int64_t num_rows, double seconds);
  // Seconds of a step; nullopt before anything was learned.
  std::optional<double> seconds(int64_t num_rows) const;
  // The most rows whose step stays below `target_s`; nullopt as above. May be below 1.
  std::optional<int64_t> max_rows(double target_s) const;

 private:
  struct Line {
    double fixed, per_row;
  };
  std::optional<Line> line() const;

  // Fading sums of weight, x, y, x*x, x*y.
  double weight_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
};

}  // namespace fathom::scheduler
