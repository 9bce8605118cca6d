#include "scheduler/cost_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace fathom::scheduler {
namespace {

// A step of 100 steps ago counts a seventh: machines get busy and contexts grow.
constexpr double kFade = 0.98;
constexpr double kMostRows = 1e9;

}  // namespace

CostModel::CostModel(CostTable table) : table_(std::move(table)) {
  for (size_t i = 0; i < table_.size(); ++i) {
    FATHOM_CHECK(table_[i].rows > 0 && table_[i].seconds > 0) << table_[i].rows;
    FATHOM_CHECK(i == 0 || (table_[i].rows > table_[i - 1].rows &&
                            table_[i].seconds >= table_[i - 1].seconds))
        << table_[i].rows;
  }
  // The measurement counts as much as a few of its largest steps.
  if (!table_.empty()) measured_ = predicted_ = 4 * table_.back().seconds;
}

void CostModel::add(int64_t num_rows, double seconds) {
  if (num_rows <= 0 || !(seconds > 0) || !std::isfinite(seconds)) return;
  const auto x = static_cast<double>(num_rows);
  if (!table_.empty()) {
    measured_ = measured_ * kFade + seconds;
    predicted_ = predicted_ * kFade + table_seconds(x);
    return;
  }
  weight_ = weight_ * kFade + 1;
  x_ = x_ * kFade + x;
  y_ = y_ * kFade + seconds;
  xx_ = xx_ * kFade + x * x;
  xy_ = xy_ * kFade + x * seconds;
}

double CostModel::factor() const { return measured_ / predicted_; }

// Few rows cost what the fewest that were measured do; many go on as the last ones.
double CostModel::table_seconds(double num_rows) const {
  const auto next = std::find_if(table_.begin(), table_.end(), [&](const CostPoint& p) {
    return static_cast<double>(p.rows) >= num_rows;
  });
  if (next == table_.begin()) return next->seconds;
  const CostPoint& before = *std::prev(next);
  const auto rows = static_cast<double>(before.rows);
  if (next == table_.end()) return before.seconds * num_rows / rows;
  const double share = (num_rows - rows) / (static_cast<double>(next->rows) - rows);
  return before.seconds + share * (next->seconds - before.seconds);
}

double CostModel::table_rows(double seconds) const {
  // The last point that is in time, and as far as the line behind it allows.
  const auto next = std::find_if(table_.begin(), table_.end(),
                                 [&](const CostPoint& p) { return p.seconds > seconds; });
  if (next == table_.begin()) return 0;
  const CostPoint& before = *std::prev(next);
  const auto rows = static_cast<double>(before.rows);
  if (next == table_.end()) return rows * seconds / before.seconds;
  const double share = (seconds - before.seconds) / (next->seconds - before.seconds);
  return rows + share * (static_cast<double>(next->rows) - rows);
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
  if (!table_.empty()) return factor() * table_seconds(static_cast<double>(num_rows));
  const std::optional<Line> l = line();
  if (!l) return std::nullopt;
  return l->fixed + l->per_row * static_cast<double>(num_rows);
}

std::optional<int64_t> CostModel::max_rows(double target_s) const {
  double rows = 0;
  if (!table_.empty()) {
    rows = table_rows(target_s / factor());
  } else {
    const std::optional<Line> l = line();
    if (!l) return std::nullopt;
    rows = (target_s - l->fixed) / l->per_row;
  }
  return static_cast<int64_t>(std::clamp(rows, 0.0, kMostRows));
}

}  // namespace fathom::scheduler
