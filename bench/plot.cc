#include "bench/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace fathom::bench {
namespace {

constexpr double kPlotWidth = 620, kPlotHeight = 440;
constexpr double kLeft = 84, kRight = 24, kTop = 48, kBottom = 62;
constexpr double kLegendRow = 20, kNoteRow = 18;
// Told apart also without colour vision (Okabe and Ito 2008), and by the shape of their points.
constexpr std::array<const char*, 6> kColors = {"#0072b2", "#d55e00", "#009e73",
                                                "#cc79a7", "#56b4e9", "#e69f00"};

template <class... Args>
std::string text(const char* format, Args... args) {
  char line[400];
  std::snprintf(line, sizeof line, format, args...);
  return line;
}

// 1200 -> "1.2k"; at most three digits that count.
std::string number(double v) {
  if (std::abs(v) >= 1e6) return text("%.3gM", v / 1e6);
  if (std::abs(v) >= 1e4) return text("%.3gk", v / 1e3);
  return text("%.4g", v);
}

std::string put(double x, double y, const char* anchor, int size, const std::string& words,
                const std::string& more = "") {
  return text("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\"%s>", x, y, anchor,
              size, more.c_str()) +
         escape_markup(words) + "</text>\n";
}

// Marks 1, 2, 5 times a power of ten apart, about `wanted` of them.
std::vector<double> linear_marks(double low, double high, int wanted) {
  const double rough = (high - low) / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> marks;
  for (double v = std::ceil(low / step) * step; v <= high + step * 1e-9; v += step) {
    marks.push_back(v);
  }
  return marks;
}

std::vector<double> log_marks(double low, double high) {
  std::vector<double> marks;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= low && factor * power <= high) marks.push_back(factor * power);
    }
  }
  return marks;
}

struct Range {
  double low = 0, high = 1;
};

bool is_drawn(const Plot& plot, const PlotPoint& p) {
  return std::isfinite(p.x) && std::isfinite(p.y) && (!plot.log_x || p.x > 0);
}

// Of the points; with zero for a linear axis, and room at the ends.
Range range_of(const Plot& plot, double PlotPoint::*axis, bool is_log) {
  bool any = false;
  Range r;
  for (const PlotSeries& s : plot.series) {
    for (const PlotPoint& p : s.points) {
      if (!is_drawn(plot, p)) continue;
      r.low = any ? std::min(r.low, p.*axis) : p.*axis;
      r.high = any ? std::max(r.high, p.*axis) : p.*axis;
      any = true;
    }
  }
  if (is_log) return {r.low / 1.3, r.high * 1.5};
  r.low = std::min(0.0, r.low);
  r.high = r.high > r.low ? r.high + (r.high - r.low) * 0.12 : r.low + 1;
  return r;
}

class Drawing {
 public:
  Drawing(const Plot& plot, double left)
      : plot_(plot),
        left_(left + kLeft),
        right_(left + kPlotWidth - kRight),
        x_(range_of(plot, &PlotPoint::x, plot.log_x)),
        y_(range_of(plot, &PlotPoint::y, false)) {}

  std::string draw() {
    out_ += put((left_ + right_) / 2, 26, "middle", 17, plot_.title, " font-weight=\"bold\"");
    bool any = false;
    for (const PlotSeries& s : plot_.series) {
      for (const PlotPoint& p : s.points) any = any || is_drawn(plot_, p);
    }
    if (!any) {
      out_ += put((left_ + right_) / 2, kPlotHeight / 2, "middle", 15, "no points");
      return out_;
    }
    axes();
    for (size_t i = 0; i < plot_.series.size(); ++i) series(i);
    for (size_t i = 0; i < plot_.series.size(); ++i) legend(i);
    return out_;
  }

 private:
  static constexpr double kFloor = kPlotHeight - kBottom;

  double at_x(double v) const {
    const double share = plot_.log_x ? std::log(v / x_.low) / std::log(x_.high / x_.low)
                                     : (v - x_.low) / (x_.high - x_.low);
    return left_ + share * (right_ - left_);
  }
  double at_y(double v) const {
    return kFloor - (v - y_.low) / (y_.high - y_.low) * (kFloor - kTop);
  }
  void line(double x1, double y1, double x2, double y2, const char* color) {
    out_ += text("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1,
                 x2, y2, color);
  }

  void axes() {
    const auto marks = plot_.log_x ? log_marks(x_.low, x_.high) : linear_marks(x_.low, x_.high, 7);
    for (const double v : marks) {
      line(at_x(v), kTop, at_x(v), kFloor, "#e3e3e3");
      out_ += put(at_x(v), kFloor + 20, "middle", 13, number(v));
    }
    for (const double v : linear_marks(y_.low, y_.high, 6)) {
      line(left_, at_y(v), right_, at_y(v), "#e3e3e3");
      out_ += put(left_ - 8, at_y(v) + 4, "end", 13, number(v));
    }
    line(left_, kFloor, right_, kFloor, "#333333");
    line(left_, kTop, left_, kFloor, "#333333");
    out_ += put((left_ + right_) / 2, kFloor + 46, "middle", 14, plot_.x_label);
    const double x = left_ - kLeft + 18, y = (kTop + kFloor) / 2;
    out_ +=
        put(x, y, "middle", 14, plot_.y_label, text(" transform=\"rotate(-90 %.1f %.1f)\"", x, y));
  }

  // A circle, a square, a diamond or a triangle.
  std::string mark(size_t index, double x, double y) const {
    const char* color = kColors[index % kColors.size()];
    switch (index % 4) {
      case 0:
        return text("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" fill=\"%s\">", x, y, color);
      case 1:
        return text("<path d=\"M%.1f %.1fh8v8h-8z\" fill=\"%s\">", x - 4, y - 4, color);
      case 2:
        return text("<path d=\"M%.1f %.1fl5.5 5.5l-5.5 5.5l-5.5 -5.5z\" fill=\"%s\">", x, y - 5.5,
                    color);
      default:
        return text("<path d=\"M%.1f %.1fl5.5 9.5h-11z\" fill=\"%s\">", x, y - 6, color);
    }
  }
  static std::string end_of_mark(size_t index) { return index % 4 == 0 ? "</circle>" : "</path>"; }

  void series(size_t index) {
    const PlotSeries& s = plot_.series[index];
    std::string path, marks;
    for (const PlotPoint& p : s.points) {
      if (!is_drawn(plot_, p)) continue;
      const double x = at_x(p.x), y = at_y(p.y);
      path += text("%s%.1f %.1f", path.empty() ? "M" : "L", x, y);
      marks +=
          mark(index, x, y) + "<title>" +
          escape_markup(s.name + (p.label.empty() ? "" : ", " + p.label) + ": " + plot_.x_label +
                        " " + number(p.x) + ", " + plot_.y_label + " " + number(p.y)) +
          "</title>" + end_of_mark(index) + "\n";
      if (!p.label.empty()) marks += put(x + 7, y - 8, "start", 12, p.label, " fill=\"#444444\"");
    }
    out_ += text("<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"",
                 kColors[index % kColors.size()]) +
            path + "\"/>\n" + marks;
  }

  void legend(size_t index) {
    const double y = kPlotHeight + kLegendRow * static_cast<double>(index) + 8;
    out_ += text("<path stroke=\"%s\" stroke-width=\"2\" d=\"M%.1f %.1fh32\"/>\n",
                 kColors[index % kColors.size()], left_, y);
    out_ += mark(index, left_ + 16, y) + end_of_mark(index) + "\n";
    out_ += put(left_ + 42, y + 4.5, "start", 13, plot_.series[index].name);
  }

  const Plot& plot_;
  double left_, right_;
  Range x_, y_;
  std::string out_;
};

}  // namespace

std::string escape_markup(const std::string& in) {
  std::string out;
  for (const char c : in) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string svg_document(const std::vector<Plot>& plots, const std::vector<std::string>& notes) {
  size_t rows = 0;
  for (const Plot& plot : plots) rows = std::max(rows, plot.series.size());
  const double legend_end = kPlotHeight + kLegendRow * static_cast<double>(rows) + 10;
  const double height = legend_end + kNoteRow * static_cast<double>(notes.size()) + 12;
  const double width = kPlotWidth * static_cast<double>(std::max<size_t>(plots.size(), 1));
  std::string out = text(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
      "height=\"%.0f\" font-family=\"DejaVu Sans, Verdana, sans-serif\" fill=\"#222222\">\n",
      width, height, width, height);
  out += text("<rect width=\"%.0f\" height=\"%.0f\" fill=\"#ffffff\"/>\n", width, height);
  for (size_t i = 0; i < plots.size(); ++i) {
    out += Drawing(plots[i], kPlotWidth * static_cast<double>(i)).draw();
  }
  for (size_t i = 0; i < notes.size(); ++i) {
    out += put(24, legend_end + kNoteRow * static_cast<double>(i + 1), "start", 12, notes[i],
               " fill=\"#444444\"");
  }
  return out + "</svg>\n";
}

}  // namespace fathom::bench
