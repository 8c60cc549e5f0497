#pragma once
// Charts as pictures of their own: SVG with its style, light or dark as the reader's screen is.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/axis.h"

namespace cloze {

/// How a series is drawn: a line, a thin one behind the others, one with a dot at each point, a dashed one, or bars.
enum class ChartMark { line, faint, dots, dashes, bars };

/// Points with a name in the legend. Names come from files of users and are escaped.
struct ChartSeries {
  std::string title{};
  ChartMark mark = ChartMark::line;
  size_t colour = 0;  ///< of the palette: 0 is grey
  std::vector<PlotPoint> points{};
  double bar_width = 0.8;  ///< in units of x
};

/// Series over the same axes.
struct ChartPanel {
  std::string title{}, x_label{}, y_label{};
  std::vector<ChartSeries> series{};
  std::optional<std::pair<double, double>> x_range{};  ///< none: that of the points
};

/// Panels below each other as the text of an SVG file. Points that are not finite, or beyond 1e100, are left out; of
/// more than 24 panels, and 16 series of a panel, the first are drawn and the others counted.
std::string chart_svg(const std::string& title, const std::vector<ChartPanel>& panels);

}  // namespace cloze
