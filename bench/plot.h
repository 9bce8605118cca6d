// Line charts as SVG, for results of benchmarks: no script, no fonts beyond the reader's own.
#pragma once

#include <string>
#include <vector>

namespace fathom::bench {

struct PlotPoint {
  double x = 0;
  double y = 0;
  std::string label;  // written beside the point; "": none
};

struct PlotSeries {
  std::string name;  // in the legend
  std::vector<PlotPoint> points;
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = false;  // then every x must be > 0
  std::vector<PlotSeries> series;
};

// Plots beside each other, with `notes` as lines below.  Points that are not finite are left out;
// a plot without points says so.
std::string svg_document(const std::vector<Plot>& plots, const std::vector<std::string>& notes);

// The text with what markup would read escaped.
std::string escape_markup(const std::string& text);

}  // namespace fathom::bench
