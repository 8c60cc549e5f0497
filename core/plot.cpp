#include "core/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "core/text.h"

namespace cloze {

namespace {

// The grid on which lines are drawn; finer than the pixels of a page.
constexpr double grid_width = 3000, grid_height = 1500;

std::string css_percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f%%", 100 * share);
  return text;
}

struct GridPoint {
  int64_t x, y;
};
GridPoint on_grid(const LineChart& chart, const PlotPoint& point) {
  const double y = std::clamp(1 - chart.y.share(point.y), -2.0, 3.0);  // far outside is cut off all the same
  return {std::llround(chart.x.share(point.x) * grid_width), std::llround(y * grid_height)};
}

/// Moves to the first point and draws to the others, each relative to the one before it, which is shorter.
std::string path_of(const LineChart& chart, const std::vector<PlotPoint>& points) {
  std::string path;
  GridPoint last{0, 0};
  for (const auto& point : points) {
    if (!std::isfinite(chart.x.share(point.x)) || !std::isfinite(chart.y.share(point.y))) continue;
    const auto at = on_grid(chart, point);
    if (path.empty())
      path = words("M", at.x, " ", at.y);
    else
      path += words("l", at.x - last.x, " ", at.y - last.y);
    last = at;
  }
  return path;
}

std::string band_path(const LineChart& chart, const PlotBand& band) {
  auto outline = band.high;
  outline.insert(outline.end(), band.low.rbegin(), band.low.rend());
  const auto path = path_of(chart, outline);
  return path.empty() ? "" : path + "z";
}

std::string axes_of(const LineChart& chart) {
  std::string svg;
  for (const double tick : chart.y.ticks) {
    const auto y = css_percent(1 - chart.y.share(tick));
    svg += words("<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"", y, "\" y2=\"", y,
                 "\"/><text class=\"tick\" x=\"-8\" y=\"", y, "\" dy=\".32em\" text-anchor=\"end\">",
                 tick_text(chart.y, tick), "</text>");
  }
  for (const double tick : chart.x.ticks)
    svg += words("<text class=\"tick\" x=\"", css_percent(chart.x.share(tick)),
                 "\" y=\"100%\" dy=\"1.5em\" text-anchor=\"middle\">", tick_text(chart.x, tick), "</text>");
  return svg + words("<text class=\"label\" x=\"50%\" y=\"100%\" dy=\"3.1em\" text-anchor=\"middle\">",
                     escaped_html(chart.x_label), "</text>");
}

}  // namespace

std::string to_svg(const LineChart& chart) {
  auto svg = words("<svg class=\"chart\" role=\"img\" aria-label=\"", escaped_html(chart.title), "\">", axes_of(chart),
                   "<svg width=\"100%\" height=\"100%\" viewBox=\"0 0 ", grid_width, " ", grid_height,
                   "\" preserveAspectRatio=\"none\">");
  for (const auto& band : chart.bands)
    svg += words("<path class=\"band ", band.style, "\" d=\"", band_path(chart, band), "\"/>");
  for (const auto& line : chart.lines) {
    const auto path = path_of(chart, line.points);
    if (path.empty()) continue;
    svg += words("<path class=\"line ", line.style, "\" d=\"", path, "\"");
    svg += line.title.empty() ? "/>" : words("><title>", escaped_html(line.title), "</title></path>");
  }
  svg += "</svg>";
  for (const auto& dot : chart.dots) {
    const double x = chart.x.share(dot.at.x), y = chart.y.share(dot.at.y);
    if (!(x >= 0 && x <= 1 && y >= 0 && y <= 1)) continue;
    svg += words("<circle class=\"dot ", dot.style, "\" cx=\"", css_percent(x), "\" cy=\"", css_percent(1 - y),
                 "\" r=\"4\"><title>", escaped_html(dot.title), "</title></circle>");
  }
  return svg + "</svg>";
}

std::string row_grid(const Axis& axis) {
  std::string svg;
  for (const double tick : axis.ticks) {
    const auto x = css_percent(axis.share(tick));
    svg += words("<line class=\"grid\" x1=\"", x, "\" x2=\"", x, "\" y1=\"0\" y2=\"100%\"/>");
  }
  return svg;
}

std::string row_stripe(const Axis& axis, double low, double high, const std::string& style) {
  return words("<rect class=\"", style, "\" x=\"", css_percent(axis.share(low)), "\" width=\"",
               css_percent(axis.share(high) - axis.share(low)), "\" y=\"0\" height=\"100%\"/>");
}

std::string row_segment(const Axis& axis, double low, double high, const std::string& style) {
  return words("<line class=\"", style, "\" x1=\"", css_percent(axis.share(low)), "\" x2=\"",
               css_percent(axis.share(high)), "\" y1=\"50%\" y2=\"50%\"/>");
}

std::string row_bar(const Axis& axis, double at, const std::string& style) {
  const auto x = css_percent(axis.share(at));
  return words("<line class=\"", style, "\" x1=\"", x, "\" x2=\"", x, "\" y1=\"20%\" y2=\"80%\"/>");
}

std::string row_dot(const Axis& axis, double at, double radius, const std::string& style, const std::string& title) {
  return words("<circle class=\"", style, "\" cx=\"", css_percent(axis.share(at)), "\" cy=\"50%\" r=\"", radius,
               "\"><title>", escaped_html(title), "</title></circle>");
}

std::string row_axis(const Axis& axis) {
  std::string svg;
  for (const double tick : axis.ticks) {
    const auto x = css_percent(axis.share(tick));
    svg += words("<line class=\"grid\" x1=\"", x, "\" x2=\"", x, "\" y1=\"0\" y2=\"6\"/><text class=\"tick\" x=\"", x,
                 "\" y=\"20\" text-anchor=\"middle\">", tick_text(axis, tick), "</text>");
  }
  return svg;
}

std::string row_svg(const std::string& title, const std::string& parts) {
  return words("<svg role=\"img\" aria-label=\"", escaped_html(title), "\">", parts, "</svg>");
}

}  // namespace cloze
