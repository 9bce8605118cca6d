// How long a step takes by its number of rows.
//
// With a measured table: straight lines between its points, times a factor that follows the steps
// that ran (machines get busy, contexts grow). Without: seconds = fixed + per_row * rows, learned
// from the steps that ran, least squares. Both forget with exponentially fading weights. More rows
// never cost less.
//
// Thread: engine.
#pragma once

#include <cstdint>
#include <optional>

#include "core/cost_table.h"

namespace fathom::scheduler {

class CostModel {
 public:
  explicit CostModel(CostTable table = {});

  void add(int64_t num_rows, double seconds);
  // Seconds of a step; nullopt before anything is known.
  std::optional<double> seconds(int64_t num_rows) const;
  // The most rows whose step stays below `target_s`; nullopt as above. May be below 1.
  std::optional<int64_t> max_rows(double target_s) const;

 private:
  struct Line {
    double fixed, per_row;
  };
  std::optional<Line> line() const;
  double table_seconds(double num_rows) const;
  double table_rows(double seconds) const;
  double factor() const;

  CostTable table_;
  double measured_ = 0, predicted_ = 0;  // fading sums of seconds
  // Fading sums of weight, x, y, x*x, x*y.
  double weight_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
};

}  // namespace fathom::scheduler
