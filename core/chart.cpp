#include "core/chart.h"

#include <algorithm>
#include <cmath>

#include "core/columns.h"
#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"

namespace cloze {

namespace {

// Pixels of the picture.
constexpr double chart_width = 900, left_edge = 78, right_edge = 26, plot_height = 232, title_height = 30,
                 row_height = 20;
constexpr double plot_width = chart_width - left_edge - right_edge;
constexpr size_t most_panels = 24, most_series = 16;

// Colours: Okabe and Ito 2008, which people with any kind of colour vision tell apart; lighter in the dark.
constexpr const char* chart_style = R"css(
svg { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }
.page { fill: #fff; }
text { fill: #1c1f23; }
.head { font-size: 17px; font-weight: 650; }
.title { font-size: 14px; font-weight: 650; }
.soft { fill: #5c636b; }
.grid { stroke: #e7e8e5; stroke-width: 1; }
.axis { stroke: #9aa0a6; stroke-width: 1; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
.faint { stroke-width: 1; opacity: .35; }
.dashes { stroke-width: 1.5; stroke-dasharray: 6 4; }
.dot { stroke: #fff; stroke-width: 1; }
.bar { opacity: .85; }
.l0 { stroke: #6d747c; } .l1 { stroke: #0072b2; } .l2 { stroke: #d55e00; } .l3 { stroke: #009e73; }
.l4 { stroke: #b0558a; } .l5 { stroke: #b87f00; } .l6 { stroke: #3a9bd0; }
.f0 { fill: #6d747c; } .f1 { fill: #0072b2; } .f2 { fill: #d55e00; } .f3 { fill: #009e73; }
.f4 { fill: #b0558a; } .f5 { fill: #b87f00; } .f6 { fill: #3a9bd0; }
@media (prefers-color-scheme: dark) {
  .page { fill: #15181b; }
  text { fill: #e7e8e6; }
  .soft { fill: #a0a7ae; }
  .grid { stroke: #2c3136; }
  .axis { stroke: #666e76; }
  .dot { stroke: #15181b; }
  .l0 { stroke: #a3abb3; } .l1 { stroke: #4fa8e0; } .l2 { stroke: #f28444; } .l3 { stroke: #35bd94; }
  .l4 { stroke: #dc97bf; } .l5 { stroke: #e8ab35; } .l6 { stroke: #8bcbf2; }
  .f0 { fill: #a3abb3; } .f1 { fill: #4fa8e0; } .f2 { fill: #f28444; } .f3 { fill: #35bd94; }
  .f4 { fill: #dc97bf; } .f5 { fill: #e8ab35; } .f6 { fill: #8bcbf2; }
}
)css";

/// A name as the picture shows it, at most so many columns of it.
std::string chart_text(const std::string& text, size_t columns) {
  auto shown = visible(text.substr(0, 16 * columns));                // a name may be long
  for (const std::string no_xml : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})  // U+FFFE and U+FFFF
    for (size_t at; (at = shown.find(no_xml)) != std::string::npos;) shown.replace(at, no_xml.size(), "?");
  return escaped_html(width_of(shown) > columns ? cut(shown, columns - 1) + "…" : shown);
}

/// A length in pixels, to a tenth.
std::string from_tenths(int64_t tenths) {
  const auto size = std::abs(tenths);
  return words(tenths < 0 ? "-" : "", size / 10, size % 10 == 0 ? "" : "." + std::to_string(size % 10));
}
std::string pixels(double length) { return from_tenths(std::llround(10 * length)); }

bool is_drawable(const PlotPoint& point) { return std::abs(point.x) <= 1e100 && std::abs(point.y) <= 1e100; }

/// A panel whose top is at `top`.
struct PanelFrame {
  const ChartPanel& panel;
  Axis x, y;
  double top, plot_top;

  double at_x(double value) const { return left_edge + plot_width * x.share(value); }
  double at_y(double value) const { return plot_top + plot_height * (1 - y.share(value)); }
};

/// The axes over the points of a panel; bars stand on 0.
std::pair<Axis, Axis> axes_over(const ChartPanel& panel) {
  double left = INFINITY, right = -INFINITY, low = INFINITY, high = -INFINITY;
  for (const auto& series : panel.series)
    for (const auto& point : series.points) {
      if (!is_drawable(point)) continue;
      left = std::min(left, point.x);
      right = std::max(right, point.x);
      low = std::min(low, series.mark == ChartMark::bars ? 0 : point.y);
      high = std::max(high, point.y);
    }
  const auto [first, last] = panel.x_range.value_or(std::pair{left, right});
  const bool has_each = panel.x_range && last - first <= 21;  // a tick for each whole number
  return {nice_axis(first, last, has_each ? static_cast<int>(last - first) : 8, false), nice_axis(low, high, 5, true)};
}

std::string path_of(const PanelFrame& frame, const ChartSeries& series) {
  std::string path;
  int64_t last_x = 0, last_y = 0;
  for (const auto& point : series.points) {
    if (!is_drawable(point)) continue;
    const auto x = std::llround(10 * frame.at_x(point.x)), y = std::llround(10 * frame.at_y(point.y));
    path += path.empty() ? words("M", from_tenths(x), " ", from_tenths(y))
                         : words("l", from_tenths(x - last_x), " ", from_tenths(y - last_y));
    last_x = x;
    last_y = y;
  }
  return path;
}

/// What the pointer is told of a point.
std::string hint(const ChartPanel& panel, const ChartSeries& series, const PlotPoint& point) {
  return words("<title>", chart_text(series.title, 60), ", ",
               panel.x_label.empty() ? "" : chart_text(panel.x_label, 20), " ", digits(point.x, 10), ": ",
               digits(point.y, 5), "</title>");
}

std::string marks_of(const PanelFrame& frame, const ChartSeries& series) {
  const auto colour = std::to_string(series.colour % 7);
  std::string svg;
  if (series.mark == ChartMark::bars) {
    for (const auto& point : series.points) {
      if (!is_drawable(point) || point.y == 0) continue;
      const double left = frame.at_x(point.x - series.bar_width / 2),
                   right = frame.at_x(point.x + series.bar_width / 2);
      const double top = frame.at_y(std::max(point.y, 0.0)), foot = frame.at_y(std::min(point.y, 0.0));
      svg += words("<rect class=\"bar f", colour, "\" x=\"", pixels(left), "\" y=\"", pixels(top), "\" width=\"",
                   pixels(right - left), "\" height=\"", pixels(foot - top), "\">", hint(frame.panel, series, point),
                   "</rect>\n");
    }
    return svg;
  }
  const auto* style = series.mark == ChartMark::faint ? " faint" : series.mark == ChartMark::dashes ? " dashes" : "";
  if (const auto path = path_of(frame, series); !path.empty())
    svg += words("<path class=\"line", style, " l", colour, "\" d=\"", path, "\"/>\n");
  if (series.mark != ChartMark::dots) return svg;
  const double radius = series.points.size() > 60 ? 2 : 3.5;
  for (const auto& point : series.points)
    if (is_drawable(point))
      svg +=
          words("<circle class=\"dot f", colour, "\" cx=\"", pixels(frame.at_x(point.x)), "\" cy=\"",
                pixels(frame.at_y(point.y)), "\" r=\"", radius, "\">", hint(frame.panel, series, point), "</circle>\n");
  return svg;
}

/// The sign of a series in the legend, 22 pixels wide.
std::string sign_of(const ChartSeries& series, double x, double y) {
  const auto colour = std::to_string(series.colour % 7);
  if (series.mark == ChartMark::bars)
    return words("<rect class=\"bar f", colour, "\" x=\"", pixels(x + 5), "\" y=\"", pixels(y - 9),
                 "\" width=\"12\" height=\"10\"/>");
  const auto* style = series.mark == ChartMark::faint ? " faint" : series.mark == ChartMark::dashes ? " dashes" : "";
  auto svg = words("<path class=\"line", style, " l", colour, "\" d=\"M", pixels(x), " ", pixels(y - 4), "h22\"/>");
  if (series.mark == ChartMark::dots)
    svg +=
        words("<circle class=\"dot f", colour, "\" cx=\"", pixels(x + 11), "\" cy=\"", pixels(y - 4), "\" r=\"3.5\"/>");
  return svg;
}

/// The last value of a line, which the legend names.
std::string last_value(const ChartSeries& series) {
  if (series.mark == ChartMark::bars || series.mark == ChartMark::faint || series.points.empty()) return "";
  return digits(series.points.back().y, 4);
}

/// The rows of the legend, from `top` on, and their number.
std::pair<std::string, size_t> legend_of(const std::vector<ChartSeries>& series, double top) {
  constexpr double of_character = 6.7, sign_width = 28, gap = 22;
  std::string svg;
  const bool has_bars =
      std::any_of(series.begin(), series.end(), [](const auto& one) { return one.mark == ChartMark::bars; });
  double x = left_edge;
  size_t rows = 1;
  for (const auto& one : series) {
    const auto value = has_bars ? "" : last_value(one);
    const auto characters = std::min<size_t>(width_of(visible(one.title)), 60) + (value.empty() ? 0 : value.size() + 1);
    const double width = sign_width + of_character * static_cast<double>(characters);
    if (x > left_edge && x + width > chart_width - right_edge) {
      x = left_edge;
      ++rows;
    }
    const double y = top + row_height * static_cast<double>(rows) - 5;
    svg += words(sign_of(one, x, y), "<text x=\"", pixels(x + sign_width), "\" y=\"", pixels(y), "\"><tspan>",
                 chart_text(one.title, 60), "</tspan>");
    if (!value.empty()) svg += words("<tspan class=\"soft\" dx=\"6\">", value, "</tspan>");
    svg += "</text>\n";
    x += width + gap;
  }
  return {svg, rows};
}

std::string grid_of(const PanelFrame& frame) {
  const double foot = frame.plot_top + plot_height;
  std::string svg;
  for (const double tick : frame.y.ticks) {
    const auto y = pixels(frame.at_y(tick));
    svg +=
        words("<path class=\"grid\" d=\"M", left_edge, " ", y, "h", plot_width, "\"/><text class=\"soft\" x=\"",
              left_edge - 8, "\" y=\"", y, "\" dy=\"4\" text-anchor=\"end\">", tick_text(frame.y, tick), "</text>\n");
  }
  for (const double tick : frame.x.ticks) {
    const auto x = pixels(frame.at_x(tick));
    svg += words("<path class=\"axis\" d=\"M", x, " ", pixels(foot), "v5\"/><text class=\"soft\" x=\"", x, "\" y=\"",
                 pixels(foot + 19), "\" text-anchor=\"middle\">", tick_text(frame.x, tick), "</text>\n");
  }
  const auto middle = pixels(frame.plot_top + plot_height / 2);
  return svg + words("<path class=\"axis\" d=\"M", left_edge, " ", pixels(foot), "h", plot_width,
                     "\"/>\n<text class=\"soft\" x=\"", left_edge + plot_width / 2, "\" y=\"", pixels(foot + 37),
                     "\" text-anchor=\"middle\">", chart_text(frame.panel.x_label, 80),
                     "</text>\n<text class=\"soft\" transform=\"translate(18 ", middle,
                     ") rotate(-90)\" text-anchor=\"middle\">", chart_text(frame.panel.y_label, 34), "</text>\n");
}

/// A panel, and the height that it takes.
std::pair<std::string, double> panel_svg(ChartPanel panel, double top) {
  if (panel.series.size() > most_series) {
    panel.title += words(" (", panel.series.size() - most_series, " more series are not drawn)");
    panel.series.resize(most_series);
  }
  const double head = panel.title.empty() ? 6 : title_height;
  auto [legend, rows] = legend_of(panel.series, top + head);
  const double plot_top = top + head + row_height * static_cast<double>(rows) + 10;
  auto [x, y] = axes_over(panel);
  const PanelFrame frame{.panel = panel, .x = std::move(x), .y = std::move(y), .top = top, .plot_top = plot_top};
  std::string svg = grid_of(frame);
  for (const auto& series : panel.series) svg += marks_of(frame, series);
  if (!panel.title.empty())
    svg += words("<text class=\"title\" x=\"", left_edge, "\" y=\"", pixels(top + 20), "\">",
                 chart_text(panel.title, 90), "</text>\n");
  return {svg + legend, plot_top - top + plot_height + 58};
}

}  // namespace

std::string chart_svg(const std::string& title, const std::vector<ChartPanel>& panels) {
  std::string svg;
  double height = title.empty() ? 10 : 46;
  for (size_t i = 0; i < std::min(panels.size(), most_panels); ++i) {
    const auto [panel, of_panel] = panel_svg(panels[i], height);
    svg += panel;
    height += of_panel;
  }
  if (panels.size() > most_panels) {
    svg += words("<text class=\"soft\" x=\"", left_edge, "\" y=\"", pixels(height), "\">", panels.size() - most_panels,
                 " more panels are not drawn</text>\n");
    height += row_height;
  }
  const auto head =
      title.empty() ? ""
                    : words("<text class=\"head\" x=\"", left_edge, "\" y=\"32\">", chart_text(title, 80), "</text>\n");
  return words("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", chart_width, "\" height=\"", pixels(height),
               "\" viewBox=\"0 0 ", chart_width, " ", pixels(height), "\" role=\"img\" aria-label=\"",
               chart_text(title, 80), "\">\n<style>", chart_style,
               "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n", head, svg, "</svg>\n");
}

}  // namespace cloze
