#include "core/report/chart.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"

namespace cloze {

namespace {

// Pixels of a picture of its own.
constexpr double chart_width = 900, left_edge = 78, right_edge = 26, plot_height = 232, title_height = 30,
                 row_height = 20;
constexpr double plot_width = chart_width - left_edge - right_edge;
constexpr size_t most_charts = 24, most_series = 16;

// The grid on which lines are drawn; finer than the pixels of a page.
constexpr double grid_width = 3000, grid_height = 1500;

// The style of a picture of its own. Colours: Okabe and Ito 2008, which people with any kind of colour vision tell
// apart; lighter in the dark.
constexpr const char* chart_style = R"css(
svg { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif; }
.page { fill: #fff; }
text { fill: #1c1f23; }
.head { font-size: 17px; font-weight: 650; }
.title { font-size: 14px; font-weight: 650; }
.tick, .label { fill: #5c636b; }
.grid { stroke: #e7e8e5; }
.axis { stroke: #9aa0a6; }
.line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.thin { stroke-width: 1; opacity: .35; }
.dash { stroke-width: 1.5; stroke-dasharray: 6 4; }
.dot { fill: currentColor; stroke: #fff; }
.bar { fill: currentColor; opacity: .85; }
.a0 { color: #6d747c; } .a1 { color: #0072b2; } .a2 { color: #d55e00; } .a3 { color: #009e73; }
.a4 { color: #b0558a; } .a5 { color: #b87f00; } .a6 { color: #3a9bd0; }
@media (prefers-color-scheme: dark) {
  .page { fill: #15181b; }
  text { fill: #e7e8e6; }
  .tick, .label { fill: #a0a7ae; }
  .grid { stroke: #2c3136; }
  .axis { stroke: #666e76; }
  .dot { stroke: #15181b; }
  .a0 { color: #a3abb3; } .a1 { color: #4fa8e0; } .a2 { color: #f28444; } .a3 { color: #35bd94; }
  .a4 { color: #dc97bf; } .a5 { color: #e8ab35; } .a6 { color: #8bcbf2; }
}
)css";

/// A name as a chart shows it, at most so many columns of it.
std::string chart_text(const std::string& text, size_t columns) {
  auto shown = text.substr(0, 16 * columns);                                                    // a name may be long
  for (const auto* no_xml : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) replace_all(shown, no_xml, "?");  // U+FFFE and U+FFFF
  shown = visible(shown);
  return escaped_html(width_of(shown) > columns ? cut(shown, columns - 1) + "…" : shown);
}

/// A length in pixels, to a tenth.
std::string pixels(double length) {
  const auto tenths = std::llround(10 * length), size = std::abs(tenths);
  return concat(tenths < 0 ? "-" : "", size / 10, size % 10 == 0 ? "" : "." + std::to_string(size % 10));
}

/// A fraction of the width or the height.
std::string part_of(double fraction) { return fixed(100 * fraction, 2) + "%"; }

bool has_area(ChartMark mark) { return mark == ChartMark::band || mark == ChartMark::margin; }
bool is_dotted(ChartMark mark) {
  return mark == ChartMark::dots || mark == ChartMark::points || mark == ChartMark::rings;
}
bool is_line(ChartMark mark) {
  return mark != ChartMark::bars && mark != ChartMark::points && mark != ChartMark::rings && !has_area(mark);
}

/// A chart whose axes are known.
struct Drawing {
  const Chart& chart;
  Axis x, y;

  explicit Drawing(const Chart& of) : chart(of) {
    double left = INFINITY, right = -INFINITY, low = INFINITY, high = -INFINITY;
    for (const auto& series : of.series)
      for (const auto& [at, value] : series.points) {
        if (!(std::abs(at) <= 1e100 && std::abs(value) <= 1e100)) continue;
        left = std::min(left, at);
        right = std::max(right, at);
        low = std::min(low, series.mark == ChartMark::bars ? 0 : value);
        high = std::max(high, value);
      }
    x = of.x ? *of.x : nice_axis(left, right, 8, false);
    y = of.y ? *of.y : nice_axis(low, high, 5, true);
  }

  /// The position of a point, from the upper left corner; none for one that the axes cannot have.
  std::optional<PlotPoint> position(const PlotPoint& point) const {
    const double across = x.fraction(point.x), down = 1 - y.fraction(point.y);
    if (!(std::abs(point.x) <= 1e100 && std::abs(point.y) <= 1e100 && std::isfinite(across) && std::isfinite(down)))
      return {};
    return PlotPoint{across, std::clamp(down, -2.0, 3.0)};  // far outside is cut off all the same
  }

  /// Moves to the first point and draws to the others, each relative to the one before it, which is shorter.
  std::string path(const std::vector<PlotPoint>& points) const {
    std::string path;
    int64_t last_x = 0, last_y = 0;
    for (const auto& point : points) {
      const auto at = position(point);
      if (!at) continue;
      const auto to_x = std::llround(at->x * grid_width), to_y = std::llround(at->y * grid_height);
      path += path.empty() ? concat("M", to_x, " ", to_y) : concat("l", to_x - last_x, " ", to_y - last_y);
      last_x = to_x;
      last_y = to_y;
    }
    return path;
  }

  /// The line or the area of a series.
  std::string shape(const ChartSeries& series) const {
    const auto title = series.title.empty() ? "/>" : "><title>" + chart_text(series.title, 120) + "</title></path>";
    if (has_area(series.mark)) {
      auto outline = series.points;
      outline.insert(outline.end(), series.low.rbegin(), series.low.rend());
      const auto drawn = path(outline);
      const auto classes = series.mark == ChartMark::margin ? "margin" : "band " + colour_classes(series.colour);
      return drawn.empty() ? "" : concat("<path class=\"", classes, "\" d=\"", drawn, "z\"/>");
    }
    const auto drawn = is_line(series.mark) ? path(series.points) : "";
    if (drawn.empty()) return "";
    const auto* style = series.mark == ChartMark::faint ? " thin" : series.mark == ChartMark::dashes ? " dash" : "";
    const auto classes = series.mark == ChartMark::zero ? "zero" : "line " + colour_classes(series.colour) + style;
    return concat("<path class=\"", classes, "\" d=\"", drawn, "\"", title);
  }

  std::string hint(const ChartSeries& series, size_t i) const {
    const auto& [at, value] = series.points[i];
    const auto text = i < series.hints.size()
                          ? chart_text(series.hints[i], 120)
                          : concat(chart_text(series.title, 60), ", ", chart_text(chart.x_label, 20), " ",
                                   digits(at, 10), ": ", digits(value, 5));
    return "<title>" + text + "</title>";
  }

  std::string marks(const ChartSeries& series) const {
    const auto colour = colour_classes(series.colour);
    std::string svg;
    for (size_t i = 0; i < series.points.size(); ++i) {
      const auto at = position(series.points[i]);
      if (!at) continue;
      if (series.mark == ChartMark::bars && series.points[i].y != 0) {
        const double half = series.bar_width / 2, left = x.fraction(series.points[i].x - half),
                     right = x.fraction(series.points[i].x + half), foot = 1 - y.fraction(0);
        svg += concat("<rect class=\"bar ", colour, "\" x=\"", part_of(left), "\" y=\"", part_of(std::min(at->y, foot)),
                      "\" width=\"", part_of(right - left), "\" height=\"", part_of(std::abs(foot - at->y)), "\">",
                      hint(series, i), "</rect>");
      }
      if (!is_dotted(series.mark) || at->x < 0 || at->x > 1 || at->y < 0 || at->y > 1) continue;
      svg += concat("<circle class=\"dot ", series.mark == ChartMark::rings ? "ring " : "", colour, "\" cx=\"",
                    part_of(at->x), "\" cy=\"", part_of(at->y), "\" r=\"", series.points.size() > 60 ? 2.5 : 4, "\">",
                    hint(series, i), "</circle>");
    }
    return svg;
  }

  /// Grid, ticks, shapes and marks, in shares of the width and the height that they are given.
  std::string svg() const {
    std::string svg;
    for (const double tick : y.ticks) {
      const auto at = part_of(1 - y.fraction(tick));
      svg += concat("<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"", at, "\" y2=\"", at,
                    "\"/><text class=\"tick\" x=\"-8\" y=\"", at, "\" dy=\".32em\" text-anchor=\"end\">",
                    tick_text(y, tick), "</text>");
    }
    for (const double tick : x.ticks)
      svg += concat("<text class=\"tick\" x=\"", part_of(x.fraction(tick)),
                    "\" y=\"100%\" dy=\"1.5em\" text-anchor=\"middle\">", tick_text(x, tick), "</text>");
    svg += concat("<line class=\"axis\" x1=\"0\" x2=\"100%\" y1=\"100%\" y2=\"100%\"/><text class=\"label\" x=\"50%\" ",
                  "y=\"100%\" dy=\"3.1em\" text-anchor=\"middle\">", chart_text(chart.x_label, 80), "</text>",
                  "<svg width=\"100%\" height=\"100%\" viewBox=\"0 0 ", grid_width, " ", grid_height,
                  "\" preserveAspectRatio=\"none\">");
    for (const auto& series : chart.series) svg += shape(series);
    svg += "</svg>";
    for (const auto& series : chart.series) svg += marks(series);
    return svg;
  }
};

/// The sign of a series in the legend of a picture, 22 pixels wide.
std::string sign_of(const ChartSeries& series, double x, double y) {
  const auto colour = colour_classes(series.colour);
  if (series.mark == ChartMark::bars)
    return concat("<rect class=\"bar ", colour, "\" x=\"", pixels(x + 5), "\" y=\"", pixels(y - 9),
                  "\" width=\"12\" height=\"10\"/>");
  const auto* style = series.mark == ChartMark::faint ? " thin" : series.mark == ChartMark::dashes ? " dash" : "";
  auto svg = concat("<path class=\"line ", colour, style, "\" d=\"M", pixels(x), " ", pixels(y - 4), "h22\"/>");
  if (is_dotted(series.mark))
    svg +=
        concat("<circle class=\"dot ", colour, "\" cx=\"", pixels(x + 11), "\" cy=\"", pixels(y - 4), "\" r=\"3.5\"/>");
  return svg;
}

/// The rows of the legend of a picture, from `top` on, and their number. The last value of a line follows its
/// name.
std::pair<std::string, size_t> legend_of(const std::vector<ChartSeries>& series, double top) {
  constexpr double of_character = 6.7, sign_width = 28, gap = 22;
  std::string svg;
  const bool has_bars = std::ranges::count(series, ChartMark::bars, &ChartSeries::mark) > 0;
  double x = left_edge;
  size_t rows = 1;
  for (const auto& one : series) {
    const bool has_value = !has_bars && one.mark != ChartMark::faint && !one.points.empty();
    const auto value = has_value ? digits(one.points.back().y, 4) : "";
    const auto characters = std::min<size_t>(width_of(visible(one.title)), 60) + (value.empty() ? 0 : value.size() + 1);
    const double width = sign_width + of_character * static_cast<double>(characters);
    if (x > left_edge && x + width > chart_width - right_edge) {
      x = left_edge;
      ++rows;
    }
    const double y = top + row_height * static_cast<double>(rows) - 5;
    svg += concat(sign_of(one, x, y), "<text x=\"", pixels(x + sign_width), "\" y=\"", pixels(y), "\"><tspan>",
                  chart_text(one.title, 60), "</tspan>");
    if (!value.empty()) svg += concat("<tspan class=\"label\" dx=\"6\">", value, "</tspan>");
    svg += "</text>\n";
    x += width + gap;
  }
  return {svg, rows};
}

/// A chart of a picture, and the height that it takes.
std::pair<std::string, double> panel_svg(Chart chart, double top) {
  if (chart.series.size() > most_series) {
    chart.title += concat(" (", chart.series.size() - most_series, " more series are not drawn)");
    chart.series.resize(most_series);
  }
  const double head = chart.title.empty() ? 6 : title_height;
  const auto [legend, rows] = legend_of(chart.series, top + head);
  const double plot_top = top + head + row_height * static_cast<double>(rows) + 10;
  auto svg = concat("<svg x=\"", left_edge, "\" y=\"", pixels(plot_top), "\" width=\"", plot_width, "\" height=\"",
                    plot_height, "\" overflow=\"visible\">", Drawing(chart).svg(),
                    "</svg>\n<text class=\"label\" transform=\"translate(18 ", pixels(plot_top + plot_height / 2),
                    ") rotate(-90)\" text-anchor=\"middle\">", chart_text(chart.y_label, 34), "</text>\n");
  if (!chart.title.empty())
    svg += concat("<text class=\"title\" x=\"", left_edge, "\" y=\"", pixels(top + 20), "\">",
                  chart_text(chart.title, 90), "</text>\n");
  return {svg + legend, plot_top - top + plot_height + 58};
}

}  // namespace

std::string colour_classes(size_t colour) {
  if (colour == 0) return "a0";
  const size_t dashes = (colour - 1) / 6 % 3;
  return concat("a", 1 + (colour - 1) % 6, dashes > 0 ? concat(" d", dashes) : "");
}

std::string chart_html(const Chart& chart) {
  const auto label = chart.y_label.empty() ? "" : "<p class=\"soft\">" + escaped_html(chart.y_label) + "</p>\n";
  return concat(label, "<div class=\"plot", chart.is_low ? " low" : "",
                "\"><svg class=\"chart\" role=\"img\" aria-label=\"", chart_text(chart.title, 120), "\">",
                Drawing(chart).svg(), "</svg></div>\n");
}

std::string chart_svg(const std::string& title, const std::vector<Chart>& charts) {
  std::string svg;
  double height = title.empty() ? 10 : 46;
  for (size_t i = 0; i < std::min(charts.size(), most_charts); ++i) {
    const auto [panel, of_panel] = panel_svg(charts[i], height);
    svg += panel;
    height += of_panel;
  }
  if (charts.size() > most_charts) {
    svg += concat("<text class=\"label\" x=\"", left_edge, "\" y=\"", pixels(height), "\">",
                  charts.size() - most_charts, " more panels are not drawn</text>\n");
    height += row_height;
  }
  const auto name = chart_text(title, 80);
  const auto head =
      title.empty() ? "" : concat("<text class=\"head\" x=\"", left_edge, "\" y=\"32\">", name, "</text>\n");
  return concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", chart_width, "\" height=\"", pixels(height),
                "\" viewBox=\"0 0 ", chart_width, " ", pixels(height), "\" role=\"img\" aria-label=\"", name,
                "\">\n<style>", chart_style, "</style>\n<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n", head,
                svg, "</svg>\n");
}

std::string legend_html(const std::vector<std::pair<std::string, std::string>>& names) {
  std::string html = "<ul class=\"key\">";
  for (const auto& [classes, name] : names)
    html += concat("<li><svg aria-hidden=\"true\"><line class=\"", classes,
                   "\" x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/></svg>", escaped_html(name), "</li>");
  return html + "</ul>\n";
}

namespace {

/// The position of a value on an axis.
std::string along(const Axis& axis, double value) { return part_of(axis.fraction(value)); }

std::string row_line(const Axis& axis, const std::string& style, double low, double high, const char* y1,
                     const char* y2) {
  return concat("<line class=\"", style, "\" x1=\"", along(axis, low), "\" x2=\"", along(axis, high), "\" y1=\"", y1,
                "\" y2=\"", y2, "\"/>");
}

std::string mark_svg(const Axis& axis, const RowMark& mark) {
  if (mark.radius > 0)
    return concat("<circle class=\"", mark.style, "\" cx=\"", along(axis, mark.low), "\" cy=\"50%\" r=\"", mark.radius,
                  "\"><title>", escaped_html(mark.hint), "</title></circle>");
  return mark.low == mark.high ? row_line(axis, mark.style, mark.low, mark.low, "20%", "80%")
                               : row_line(axis, mark.style, mark.low, mark.high, "50%", "50%");
}

}  // namespace

std::string row_chart_html(const RowChart& chart) {
  const auto at = [&](double value) { return along(chart.axis, value); };
  const auto line = [&](const char* style, double low, double high, const char* y1, const char* y2) {
    return row_line(chart.axis, style, low, high, y1, y2);
  };
  std::string grid, ticks;
  for (const double tick : chart.axis.ticks) {
    grid += line("grid", tick, tick, "0", "100%");
    ticks += line("grid", tick, tick, "0", "6") + concat("<text class=\"tick\" x=\"", at(tick),
                                                         "\" y=\"20\" text-anchor=\"middle\">",
                                                         tick_text(chart.axis, tick), "</text>");
  }
  if (chart.margin > 0)
    grid += concat("<rect class=\"margin\" x=\"", at(-chart.margin), "\" width=\"",
                   part_of(chart.axis.fraction(chart.margin) - chart.axis.fraction(-chart.margin)),
                   "\" y=\"0\" height=\"100%\"/>");
  if (chart.has_zero) grid += line("zero", 0, 0, "0", "100%");
  const auto title = escaped_html(chart.title);
  std::string html = "<div class=\"rows\">\n";
  for (const auto& row : chart.rows) {
    html += concat("<div class=\"name\">", escaped_html(row.name), "</div><div class=\"said\">", escaped_html(row.said),
                   "</div><div class=\"draw\"><svg role=\"img\" aria-label=\"", title, ": ", escaped_html(row.name),
                   "\">", grid, "<g class=\"", colour_classes(row.colour), "\">");
    for (const auto& mark : row.marks) html += mark_svg(chart.axis, mark);
    html += "</g></svg></div>\n";
  }
  html += concat("<div class=\"draw axis\"><svg role=\"img\" aria-label=\"axis\">", ticks, "</svg></div>\n");
  const auto& [left, middle, right] = chart.sides;
  if (!middle.empty())
    html += concat("<div class=\"draw axis\"><span class=\"sides\"><span>", escaped_html(left), "</span><span>",
                   escaped_html(middle), "</span><span>", escaped_html(right), "</span></span></div>\n");
  return html + "</div>\n";
}

}  // namespace cloze
