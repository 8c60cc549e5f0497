#pragma once
// Plots as inline SVG that takes the width of its column: shapes are scaled, text and strokes are not. Colours come
// from the classes of the page (core/page_style.h).
#include <string>
#include <vector>

#include "core/axis.h"

namespace cloze {

/// A polyline. `style`: classes.
struct PlotLine {
  std::string style{}, title{};
  std::vector<PlotPoint> points{};
};

/// The area between two lines over the same x.
struct PlotBand {
  std::string style{};
  std::vector<PlotPoint> low{}, high{};
};

/// A round mark. `style`: classes.
struct PlotDot {
  std::string style{}, title{};
  PlotPoint at{};
};

struct LineChart {
  std::string title{}, x_label{};
  Axis x{}, y{};
  std::vector<PlotBand> bands{};  ///< below the lines
  std::vector<PlotLine> lines{};
  std::vector<PlotDot> dots{};  ///< above the lines; those outside the axes are left out
};

/// A chart of lines; what is outside the axes is cut off.
std::string to_svg(const LineChart& chart);

/// At most `count` of the points, the first and the last among them, evenly spaced by their index.
template <class T>
std::vector<T> thinned(const std::vector<T>& points, size_t count) {
  if (points.size() <= count || count < 2) return points;
  std::vector<T> kept;
  for (size_t i = 0; i < count; ++i) kept.push_back(points[i * (points.size() - 1) / (count - 1)]);
  return kept;
}

// Parts of a row of a chart whose rows share one axis: elements of an SVG of any width and height.
std::string row_grid(const Axis& axis);
std::string row_stripe(const Axis& axis, double low, double high, const std::string& style);
std::string row_segment(const Axis& axis, double low, double high, const std::string& style);
std::string row_bar(const Axis& axis, double at, const std::string& style);
std::string row_dot(const Axis& axis, double at, double radius, const std::string& style, const std::string& title);
/// The ticks of the axis with their numbers.
std::string row_axis(const Axis& axis);
/// The SVG of a row, named by its title.
std::string row_svg(const std::string& title, const std::string& parts);

}  // namespace cloze
