#pragma once
// Plots as inline SVG that takes the width of its column: shapes are scaled, text and strokes are not. Colours come
// from the classes of the page (study/page_style.h).
#include <string>
#include <vector>

namespace cloze {

/// An axis, linear or logarithmic.
struct Axis {
  double low = 0, high = 1;
  std::vector<double> ticks{};
  bool logarithmic = false;
  /// Where a value stands: 0 at `low`, 1 at `high`.
  double share(double value) const;
  /// The value that stands there.
  double at(double share) const;
};

/// An axis over [low, high] with about `count` ticks at multiples of 1, 2 or 5 times a power of ten. `loose`: it begins
/// and ends at ticks. Values that are not finite give the axis of [0, 1].
/// Source: Heckbert 1990, "Nice numbers for graph labels", Graphics Gems.
Axis nice_axis(double low, double high, int count, bool loose);

/// A logarithmic axis over [low, high], both above 0, with ticks at powers of ten, over less than three decades also at
/// 2 and 5 times these. Where no two of these lie within, the ticks are the ends.
Axis log_axis(double low, double high);

/// The text of a tick: all ticks of a linear axis have the same decimals; from 10,000 on (of a logarithmic axis from
/// 1,000 on) 12.5 k, 20 M.
std::string tick_text(const Axis& axis, double tick);

struct PlotPoint {
  double x = 0, y = 0;
};

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
