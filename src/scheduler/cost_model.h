// How long a step takes by its number of rows and their context.
//
// With a measured table: straight lines between its points, times a factor that follows the steps
// that ran (machines get busy). Without, whatever the context, a line that is learned from the
// steps that ran: it goes through the latest ones, and its slope is that of steps of clearly
// different sizes, by how they differed from those just before them, so that many steps of one size
// do not make it be forgotten. A machine that gets busy lifts the line at once, and tilts it when
// sizes differ again. More rows never cost less.
//
// Thread: engine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/cost_table.h"

namespace fathom::scheduler {

class CostModel {
 public:
  explicit CostModel(CostTable table = {});
  CostModel(const CostModel&) = delete;
  CostModel& operator=(const CostModel&) = delete;

  void add(int64_t num_rows, double seconds, int64_t context = 0);
  // Seconds of a step; nullopt before anything is known.
  std::optional<double> seconds(int64_t num_rows, int64_t context = 0) const;
  // The most rows, without context, whose step stays below `target_s`; nullopt as above. May be
  // below 1. Where costs are learned and rows hardly cost anything, a number on the way there from
  // the size of the latest steps.
  std::optional<int64_t> max_rows(double target_s) const;

  bool is_measured() const { return !table_.empty(); }
  // Whether it tells steps of different sizes apart: measured, or learned from some of each.
  bool knows_sizes() const;

 private:
  struct Line {
    double fixed, per_row;
    double at(double rows) const { return fixed + per_row * rows; }
  };
  std::optional<Line> line() const;
  using Curve = std::span<const CostPoint>;  // points of one context
  double table_seconds(double num_rows, double context) const;
  static Line line_before(Curve curve, Curve::iterator next);
  static double curve_seconds(Curve curve, double num_rows);
  static double curve_rows(Curve curve, double seconds);
  double factor() const;

  CostTable table_;
  std::vector<Curve> curves_;            // of table_, by context
  double measured_ = 0, predicted_ = 0;  // fading sums of seconds
  // Fading means of rows and seconds, and sums of squares and products of what steps differed by.
  int64_t num_steps_ = 0;
  double x_ = 0, y_ = 0, xx_ = 0, xy_ = 0;
};

}  // namespace fathom::scheduler
