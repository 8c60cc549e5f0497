#pragma once
// Charts in SVG: parts of a page, whose shapes take the width of their column while text and strokes do not, and
// pictures of their own, light or dark as the reader's screen is.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/report/axis.h"

namespace cloze {

/// How a series is drawn: lines (`faint`: thin, below the others; `dots`: with a dot at each point), marks at its
/// points, bars on 0, the area between two lines, or what lies below all of them: the line of no difference, and a
/// range that does not matter.
enum class ChartMark { line, faint, dots, dashes, points, rings, bars, band, zero, margin };

/// Points with a name. Names come from files of users and are escaped.
struct ChartSeries {
  std::string title{};
  ChartMark mark = ChartMark::line;
  size_t colour = 0;  ///< of the palette: 0 is grey; from 7 on the six others again, with dashes
  std::vector<PlotPoint> points{};
  std::vector<PlotPoint> low{};      ///< of a band: its lower edge, over the same x
  std::vector<std::string> hints{};  ///< shown at the pointer for each point; empty: the title, x and y
  double bar_width = 0.8;            ///< in units of x
};

/// Series over the same axes. What is outside the axes is cut off; points that are not finite, that a logarithmic axis
/// does not have, or that are beyond 1e100, are left out.
struct Chart {
  std::string title{}, x_label{}, y_label{};
  std::vector<ChartSeries> series{};  ///< the later above the earlier
  std::optional<Axis> x{}, y{};       ///< none: over the points
  bool is_low = false;                ///< of a page: two thirds as high
};

/// A part of a page: the chart under the label of its y axis.
std::string chart_html(const Chart& chart);

/// Charts below each other as the text of an SVG file, each with a legend. Of more than 24 charts, and 16 series of a
/// chart, the first are drawn and the others counted.
std::string chart_svg(const std::string& title, const std::vector<Chart>& charts);

/// The classes of a colour of the palette in the style sheet of pages.
std::string colour_classes(size_t colour);

/// The names of series by their classes, a list of a page.
std::string legend_html(const std::vector<std::pair<std::string, std::string>>& names);

/// A mark on a row: a dot where it has a radius [pixels], a bar across the row where it has no width, else a line.
struct RowMark {
  std::string style{};  ///< class of the page
  double low = 0, high = 0;
  double radius = 0;
  std::string hint{};
};

/// A row of intervals or dots between its name and what is said of it.
struct ChartRow {
  std::string name{}, said{};
  size_t colour = 0;
  std::vector<RowMark> marks{};
};

/// Rows over one axis, a part of a page.
struct RowChart {
  std::string title{};
  Axis axis{};
  std::vector<ChartRow> rows{};
  double margin = 0;          ///< half of the width of the stripe around 0 that does not matter; 0: none
  bool has_zero = false;      ///< 0 is a line
  std::string sides[3] = {};  ///< below the axis: left, middle, right; empty: no such line
};
std::string row_chart_html(const RowChart& chart);

/// At most `count` of the points, the first and the last among them, evenly spaced by their index.
template <class T>
std::vector<T> thinned(const std::vector<T>& points, size_t count) {
  if (points.size() <= count || count < 2) return points;
  std::vector<T> kept;
  for (size_t i = 0; i < count; ++i) kept.push_back(points[i * (points.size() - 1) / (count - 1)]);
  return kept;
}

}  // namespace cloze
