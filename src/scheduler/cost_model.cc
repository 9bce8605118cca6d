#include "scheduler/cost_model.h"

#include <algorithm>
#include <cmath>

namespace fathom::scheduler {
namespace {

// A step of 100 steps ago counts a seventh: machines get busy and contexts grow.
constexpr double kFade = 0.98;
constexpr double kMostRows = 1e9;

}  // namespace

void CostModel::add(int64_t num_rows, double seconds) {
  if (num_rows <= 0 || !(seconds > 0) || !std::isfinite(seconds)) return;
  const auto x = static_cast<double>(num_rows);
  weight_ = weight_ * kFade + 1;
  x_ = x_ * kFade + x;
  y_ = y_ * kFade + seconds;
  xx_ = xx_ * kFade + x * x;
  xy_ = xy_ * kFade + x * seconds;
}

std::optional<CostModel::Line> CostModel::line() const {
  if (weight_ == 0) return std::nullopt;
  const double mean_x = x_ / weight_, mean_y = y_ / weight_;
  const double variance = xx_ / weight_ - mean_x * mean_x;
  // Steps of one size say nothing of the slope; then all cost is taken to be the rows'. A line
  // through the origin also stands in where the noise gives one that falls.
  const Line through_origin{0, mean_y / mean_x};
  if (variance < 1e-6 * mean_x * mean_x) return through_origin;
  const double slope = (xy_ / weight_ - mean_x * mean_y) / variance;
  const double fixed = mean_y - slope * mean_x;
  if (slope <= 0 || fixed < 0) return through_origin;
  return Line{fixed, slope};
}

std::optional<double> CostModel::seconds(int64_t num_rows) const {
  const std::optional<Line> l = line();
  if (!l) return std::nullopt;
  return l->fixed + l->per_row * static_cast<double>(num_rows);
}

std::optional<int64_t> CostModel::max_rows(double target_s) const {
  const std::optional<Line> l = line();
  if (!l) return std::nullopt;
  const double rows = (target_s - l->fixed) / l->per_row;
  return static_cast<int64_t>(std::clamp(rows, 0.0, kMostRows));
}

}  // namespace fathom::scheduler
