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
// Of the means that a learned line goes through.
constexpr double kQuickFade = 0.9;
// Before sizes can be told apart; a step within so much of the mean size tells nothing of a slope.
constexpr int64_t kLeastSteps = 4;
constexpr double kLeastSpread = 1e-3, kSameSize = 0.1;
// Of a row, in steps.
constexpr double kLeastSlope = 1e-9;
// Of time in proportion to rows: of a flatter line noise alone would make no rows or all of them.
constexpr double kLeastShare = 0.25;

}  // namespace

CostModel::CostModel(CostTable table) : table_(std::move(table)) {
  for (size_t begin = 0, i = 0; i < table_.size(); ++i) {
    const CostPoint& p = table_[i];
    FATHOM_CHECK(p.rows > 0 && p.seconds > 0 && p.context >= 0) << p.rows;
    FATHOM_CHECK(i == begin || (p.rows > table_[i - 1].rows && p.seconds >= table_[i - 1].seconds))
        << p.rows;
    if (i + 1 < table_.size() && table_[i + 1].context == p.context) continue;
    FATHOM_CHECK(curves_.empty() || p.context > curves_.back().front().context) << p.context;
    curves_.push_back(Curve(table_).subspan(begin, i + 1 - begin));
    begin = i + 1;
  }
  // The measurement counts as much as a few of its largest steps.
  if (!table_.empty()) measured_ = predicted_ = 4 * table_.back().seconds;
}

void CostModel::add(int64_t num_rows, double seconds, int64_t context) {
  if (num_rows <= 0 || !(seconds > 0) || !std::isfinite(seconds)) return;
  const auto x = static_cast<double>(num_rows);
  if (!table_.empty()) {
    measured_ = measured_ * kFade + seconds;
    predicted_ = predicted_ * kFade + table_seconds(x, static_cast<double>(context));
    return;
  }
  const double share = num_steps_++ == 0 ? 1 : 1 - kQuickFade, dx = x - x_, dy = seconds - y_;
  x_ += share * dx;
  y_ += share * dy;
  if (num_steps_ == 1 || std::abs(dx) <= kSameSize * x_) return;
  xx_ = xx_ * kFade + dx * dx;
  xy_ = xy_ * kFade + dx * dy;
}

double CostModel::factor() const { return measured_ / predicted_; }

// Through `next` and the point before it. Behind the last point: on as steeply as the last two say,
// or all of them if that is more; what is flat, or one point alone, goes on in proportion.
CostModel::Line CostModel::line_before(Curve curve, Curve::iterator next) {
  const auto slope = [](const CostPoint& a, const CostPoint& b) {
    return (b.seconds - a.seconds) / static_cast<double>(b.rows - a.rows);
  };
  const CostPoint& last = curve.back();
  const Line in_proportion{0, last.seconds / static_cast<double>(last.rows)};
  if (curve.size() == 1) return in_proportion;
  const bool is_behind = next == curve.end();
  const CostPoint& p = is_behind ? last : *next;
  const double per_row =
      is_behind ? std::max(slope(curve[curve.size() - 2], last), slope(curve.front(), last))
                : slope(*std::prev(next), p);
  if (is_behind && per_row <= 0) return in_proportion;
  return {p.seconds - per_row * static_cast<double>(p.rows), per_row};
}

// Few rows cost what the fewest that were measured do.
double CostModel::curve_seconds(Curve curve, double num_rows) {
  const auto next = std::find_if(curve.begin(), curve.end(), [&](const CostPoint& p) {
    return static_cast<double>(p.rows) >= num_rows;
  });
  return next == curve.begin() ? next->seconds : line_before(curve, next).at(num_rows);
}

// As far as the line behind the last point that is in time allows.
double CostModel::curve_rows(Curve curve, double seconds) {
  const auto next = std::find_if(curve.begin(), curve.end(),
                                 [&](const CostPoint& p) { return p.seconds > seconds; });
  if (next == curve.begin()) return 0;
  const Line l = line_before(curve, next);
  return l.per_row > 0 ? (seconds - l.fixed) / l.per_row : kMostRows;
}

// Between two contexts by a straight line; beyond the last as far as the last two say.
double CostModel::table_seconds(double num_rows, double context) const {
  if (curves_.size() == 1) return curve_seconds(curves_[0], num_rows);
  size_t i = 1;
  while (i + 1 < curves_.size() && static_cast<double>(curves_[i][0].context) < context) ++i;
  const auto low = static_cast<double>(curves_[i - 1][0].context);
  const auto high = static_cast<double>(curves_[i][0].context);
  const double near = curve_seconds(curves_[i - 1], num_rows);
  const double share = std::max(0.0, (context - low) / (high - low));
  return near + share * std::max(0.0, curve_seconds(curves_[i], num_rows) - near);
}

std::optional<CostModel::Line> CostModel::line() const {
  if (num_steps_ == 0) return std::nullopt;
  // Steps of one size say nothing of the slope; then all cost is taken to be the rows'. Where the
  // noise gives a line that falls, rows cost nothing that can be seen.
  const Line through_origin{0, y_ / x_};
  if (xx_ == 0) return through_origin;
  const double slope = xy_ / xx_, fixed = y_ - slope * x_;
  if (fixed < 0) return through_origin;
  if (slope <= kLeastSlope * y_) return Line{y_, kLeastSlope * y_};
  return Line{fixed, slope};
}

bool CostModel::knows_sizes() const {
  return is_measured() || (num_steps_ >= kLeastSteps && xx_ > kLeastSpread * x_ * x_);
}

std::optional<double> CostModel::seconds(int64_t num_rows, int64_t context) const {
  const auto rows = static_cast<double>(num_rows);
  if (is_measured()) return factor() * table_seconds(rows, static_cast<double>(context));
  const std::optional<Line> l = line();
  if (!l) return std::nullopt;
  return l->at(rows);
}

std::optional<int64_t> CostModel::max_rows(double target_s) const {
  double rows = 0;
  if (is_measured()) {
    rows = curve_rows(curves_[0], target_s / factor());
  } else {
    const std::optional<Line> l = line();
    if (!l) return std::nullopt;
    // From the latest size on. Where that falls short of the target the next steps go further.
    rows = x_ + (target_s - y_) / std::max(l->per_row, kLeastShare * y_ / x_);
  }
  return static_cast<int64_t>(std::clamp(rows, 0.0, kMostRows));
}

}  // namespace fathom::scheduler
