// The page of a fit: one file, no script, no font and no picture from elsewhere.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/log.h"
#include "study/fit_report.h"
#include "study/text.h"

namespace cloze {

namespace {

constexpr const char* style = R"css(
:root { color-scheme: light dark; --page: #fcfcfb; --ink: #1c1f23; --soft: #5c636b; --faint: #e4e5e2;
  --c0: #440f76; --c1: #7a2a9a; --c2: #b5367a; --c3: #de5f55; --c4: #e98d2f; --c5: #b59a00; --c6: #0072b2; --c7:
  #009e73; }
@media (prefers-color-scheme: dark) { :root { --page: #15181b; --ink: #e7e8e6; --soft: #a0a7ae; --faint: #2c3136;
  --c0: #b9a0e8; --c1: #cf92e0; --c2: #ee85b5; --c3: #f98c7e; --c4: #f5b05f; --c5: #e3d05a; --c6: #56b4e9; --c7:
  #35bd94; } }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.5 system-ui, "Segoe UI", Roboto, Arial,
  sans-serif;
  font-variant-numeric: tabular-nums; }
main { max-width: 70rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0; } h2 { font-size: 1.15rem; margin: 3rem 0 .9rem; }
p, li { max-width: 46rem; overflow-wrap: anywhere; } .soft { color: var(--soft); font-size: .875rem; }
.plot { padding: 2rem 1rem 3.4rem 3.6rem; } .chart { display: block; width: 100%; height: 24rem; overflow: visible; }
.chart svg { overflow: hidden; } .grid { stroke: var(--faint); } .tick { fill: var(--soft); font-size: 12px; }
.label { fill: var(--soft); font-size: 13px; } .line { fill: none; stroke: var(--c); stroke-width: 2; vector-effect:
  non-scaling-stroke; }
.band { fill: var(--c); opacity: .18; } .dot { fill: var(--c); opacity: .75; } .best { fill: var(--page); stroke:
  var(--c); stroke-width: 2; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); } .c4 { --c: var(--c4);
  }
.c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); }
.key { display: flex; flex-wrap: wrap; gap: .3rem 1.3rem; list-style: none; padding: 0; margin: 0; font-size: .9rem; }
.key svg { width: 1.5rem; height: .8rem; } .key line { stroke: var(--c); stroke-width: 3; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { text-align: right; white-space: nowrap; padding: .4rem 1.2rem .4rem 0; border-bottom: 1px solid
  var(--faint); }
th { color: var(--soft); font-weight: 500; } th:first-child, td:first-child { text-align: left; }
)css";

std::string range(const Interval& interval, int count) {
  return digits(interval.low, count) + " to " + digits(interval.high, count);
}

/// An axis over [low, high]; logarithmic, or linear.
struct Axis {
  double low, high;
  bool logarithmic = true;
  double share(double value) const {
    return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }
  /// The value at a share of the axis.
  double at(double part) const { return logarithmic ? low * std::pow(high / low, part) : low + part * (high - low); }
  std::vector<double> ticks() const;
};

/// 1, 2 and 5 of every power of ten, or every few powers alone; of a linear axis multiples of one of these.
std::vector<double> Axis::ticks() const {
  std::vector<double> found;
  if (!logarithmic) {
    const double rough = (high - low) / 6, power = std::pow(10, std::floor(std::log10(rough))), lead = rough / power;
    const double step = power * (lead < 1.5 ? 1 : lead < 3 ? 2 : lead < 7 ? 5 : 10);
    for (double tick = std::ceil(low / step) * step; tick <= high; tick += step) found.push_back(tick);
    return found;
  }
  const double decades = std::log10(high / low);
  const int every = std::max(1, static_cast<int>(decades / 6));
  for (int power = static_cast<int>(std::floor(std::log10(low))); std::pow(10, power) <= high; power += every)
    for (const double lead : {1.0, 2.0, 5.0}) {
      const double tick = lead * std::pow(10, power);
      if (tick >= low && tick <= high && (lead == 1 || decades < 2.5)) found.push_back(tick);
    }
  return found;
}

std::string share_text(double share) { return digits(100 * share, 6) + "%"; }

/// A chart of lines, bands and dots, as wide as its column: shapes are scaled, text and strokes are not.
class Chart {
 public:
  Chart(std::string title, Axis x, Axis y, const std::string& x_label, const std::string& y_label)
      : title_(std::move(title)), x_(x), y_(y) {
    for (const double tick : y_.ticks()) {
      const auto at = share_text(1 - y_.share(tick));
      axes_ += words("<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"", at, "\" y2=\"", at,
                     "\"/><text class=\"tick\" x=\"-8\" y=\"", at, "\" dy=\".32em\" text-anchor=\"end\">",
                     tick_text(y_, tick), "</text>");
    }
    for (const double tick : x_.ticks())
      axes_ += words("<text class=\"tick\" x=\"", share_text(x_.share(tick)),
                     "\" y=\"100%\" dy=\"1.5em\" text-anchor=\"middle\">", tick_text(x_, tick), "</text>");
    axes_ +=
        words("<text class=\"label\" x=\"50%\" y=\"100%\" dy=\"3.1em\" text-anchor=\"middle\">", escaped_html(x_label),
              "</text><text class=\"label\" x=\"-48\" y=\"-10\">", escaped_html(y_label), "</text>");
  }
  void line(const std::string& colour, const std::vector<std::pair<double, double>>& points) {
    shapes_ += words("<path class=\"line ", colour, "\" d=\"", path(points), "\"/>");
  }
  void band(const std::string& colour, const std::vector<std::pair<double, double>>& outline) {
    shapes_ += words("<path class=\"band ", colour, "\" d=\"", path(outline), "z\"/>");
  }
  void dot(const std::string& classes, double x, double y, double radius, const std::string& title) {
    if (!std::isfinite(x_.share(x)) || !std::isfinite(y_.share(y))) return;
    if (y_.share(y) < 0 || y_.share(y) > 1 || x_.share(x) < 0 || x_.share(x) > 1) return;
    dots_ +=
        words("<circle class=\"", classes, "\" cx=\"", share_text(x_.share(x)), "\" cy=\"", share_text(1 - y_.share(y)),
              "\" r=\"", radius, "\"><title>", escaped_html(title), "</title></circle>");
  }
  std::string svg() const {
    return words("<div class=\"plot\"><svg class=\"chart\" role=\"img\" aria-label=\"", escaped_html(title_), "\">",
                 axes_, "<svg width=\"100%\" height=\"100%\" viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\">",
                 shapes_, "</svg>", dots_, "</svg></div>\n");
  }

 private:
  static std::string tick_text(const Axis& axis, double tick) {
    return axis.logarithmic && tick >= 1e3 ? (tick < 1e16 ? with_prefix(tick) : digits(tick, 2)) : digits(tick, 4);
  }
  std::string path(const std::vector<std::pair<double, double>>& points) const {
    std::string found;
    for (const auto& [x, y] : points) {
      const double at_x = 1000 * x_.share(x), at_y = 1000 * (1 - y_.share(y));
      if (!std::isfinite(at_x) || !std::isfinite(at_y)) continue;
      found += words(found.empty() ? "M" : "L", digits(at_x, 5), " ", digits(std::clamp(at_y, -2000.0, 3000.0), 5));
    }
    return found;
  }
  std::string title_;
  Axis x_, y_;
  std::string axes_, shapes_, dots_;
};

/// Smallest and largest value, with some room.
template <class Values>
Axis axis_over(const Values& values, bool logarithmic, double room) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (logarithmic) return {*low / (1 + room), *high * (1 + room), true};
  const double margin = room * std::max(*high - *low, 1e-9);
  return {*low - margin, *high + margin, false};
}

std::vector<double> values_of_points(const FitReport& report, double (*value)(const ScalingPoint&)) {
  std::vector<double> found;
  for (const auto& point : report.points) found.push_back(value(point));
  return found;
}

double flops_of(const ScalingPoint& point) { return training_flops(point.size, point.tokens); }

/// The budgets of the curves: six from the smallest point to the largest one.
std::vector<double> budgets_of(const FitReport& report) {
  const auto all = axis_over(values_of_points(report, flops_of), true, 0);
  std::vector<double> budgets;
  for (int k = 0; k < 6; ++k) budgets.push_back(all.at(k / 5.0));
  return budgets;
}

size_t nearest(const std::vector<double>& budgets, double flops) {
  const auto far = [&](double budget) { return std::abs(std::log(budget / flops)); };
  return static_cast<size_t>(
      std::min_element(budgets.begin(), budgets.end(), [&](double a, double b) { return far(a) < far(b); }) -
      budgets.begin());
}

std::string colour(size_t budget) { return "c" + std::to_string(budget); }

std::string key_of(const std::vector<std::string>& names, size_t first_colour) {
  std::string html = "<ul class=\"key\">";
  for (size_t i = 0; i < names.size(); ++i)
    html += words("<li><svg class=\"", colour(first_colour + i),
                  "\"><line x1=\"0\" x2=\"100%\" y1=\"50%\" y2=\"50%\"/></svg> ", names[i], "</li>");
  return html + "</ul>\n";
}

std::string isoflop_curves(const FitReport& report) {
  const auto& law = report.fit.law;
  const auto budgets = budgets_of(report);
  auto sizes = values_of_points(report, [](const ScalingPoint& point) { return point.size; });
  auto losses = values_of_points(report, [](const ScalingPoint& point) { return point.loss; });
  for (const double flops : budgets) losses.push_back(compute_optimal(law, flops).loss);
  losses.erase(std::remove_if(losses.begin(), losses.end(), [](double x) { return !std::isfinite(x); }), losses.end());
  const auto x = axis_over(sizes, true, 0.3), y = axis_over(losses, false, 0.05);
  Chart chart("IsoFLOP curves", x, y, "parameters N", "loss");
  std::vector<std::string> names;
  for (size_t k = 0; k < budgets.size(); ++k) {
    std::vector<std::pair<double, double>> curve;
    for (int i = 0; i <= 120; ++i) {
      const double size = x.at(i / 120.0);
      curve.emplace_back(size, law.loss(size, budgets[k] / 6 / size));
    }
    chart.line(colour(k), curve);
    names.push_back(digits(budgets[k], 2) + " FLOPs");
  }
  for (const auto& point : report.points)
    chart.dot("dot " + colour(nearest(budgets, flops_of(point))), point.size, point.loss, 4,
              words(point.name, ": ", with_prefix(point.size), " parameters, ", with_prefix(point.tokens),
                    " tokens, loss ", digits(point.loss, 5)));
  for (size_t k = 0; k < budgets.size(); ++k) {
    const auto best = compute_optimal(law, budgets[k]);
    chart.dot("best " + colour(k), best.size, best.loss, 5,
              words("best of ", digits(budgets[k], 2), " FLOPs: ", with_prefix(best.size), " parameters, loss ",
                    digits(best.loss, 5)));
  }
  return key_of(names, 0) + chart.svg() +
         "<p class=\"soft\">Lines: the law at equal FLOPs, D = C / 6 N; rings: its smallest loss. Dots: points, in the "
         "colour of the nearest budget.</p>\n";
}

std::string optimal_curves(const FitReport& report) {
  const auto& fit = report.fit;
  auto budgets = budgets_of(report);
  for (const auto& one : report.optimal) budgets.push_back(one.flops.value);
  const auto x = axis_over(budgets, true, 0.2);
  std::vector<double> reached;
  struct Curve {
    std::vector<std::pair<double, double>> middle, outline, low;
  } curves[2];
  for (int i = 0; i <= 60; ++i) {
    const double flops = x.at(i / 60.0);
    for (int which = 0; which < 2; ++which) {
      const auto value = [=](const ScalingLaw& law) {
        const auto best = compute_optimal(law, flops);
        return which == 0 ? best.size : best.tokens;
      };
      const auto interval = fit.interval(value);
      auto& curve = curves[which];
      curve.middle.emplace_back(flops, value(fit.law));
      curve.outline.emplace_back(flops, interval.high), curve.low.emplace_back(flops, interval.low);
      for (const double y : {value(fit.law), interval.low, interval.high})
        if (std::isfinite(y) && y > 0) reached.push_back(y);
    }
  }
  if (reached.empty()) return "<p>The law has no compute-optimal size.</p>\n";
  Chart chart("Compute-optimal size and tokens", x, axis_over(reached, true, 0.2), "FLOPs C", "parameters N, tokens D");
  for (int which = 0; which < 2; ++which) {
    auto& curve = curves[which];
    curve.outline.insert(curve.outline.end(), curve.low.rbegin(), curve.low.rend());
    const auto name = colour(static_cast<size_t>(6 + which));
    if (report.has_intervals) chart.band(name, curve.outline);
    chart.line(name, curve.middle);
  }
  return key_of({words("parameters, N ~ C^", digits(report.exponents[0].value, 3)),
                 words("tokens, D ~ C^", digits(report.exponents[1].value, 3))},
                6) +
         chart.svg();
}

std::string table_of(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  const auto row = [](const std::vector<std::string>& cells, const char* tag) {
    std::string html = "<tr>";
    for (const auto& cell : cells) html += words("<", tag, ">", cell, "</", tag, ">");
    return html + "</tr>\n";
  };
  std::string html = "<div class=\"scroll\"><table>\n" + row(head, "th");
  for (const auto& cells : rows) html += row(cells, "td");
  return html + "</table></div>\n";
}

std::string tables_of(const FitReport& report) {
  const auto interval = [&](const Estimate& one) { return report.has_intervals ? range(one.interval, 4) : ""; };
  const auto confidence = digits(100 * report.fit.confidence, 3) + " % interval";
  std::vector<std::vector<std::string>> law, optimal;
  for (const auto& one : report.parameters) law.push_back({one.name, digits(one.value, 5), interval(one)});
  for (const auto& one : report.exponents) law.push_back({one.name, digits(one.value, 4), interval(one)});
  const auto add = [&](const char* kind, const Prediction& one) {
    optimal.push_back({kind, digits(one.flops.value, 3), with_prefix(one.size.value), with_prefix(one.tokens.value),
                       digits(one.loss.value, 5), interval(one.loss)});
  };
  for (const auto& one : report.optimal) add("compute-optimal", one);
  for (const auto& one : report.predicted) add("asked for", one);
  return "<h2>Estimates</h2>\n" + table_of({"", "value", confidence}, law) + "<h2>Predictions</h2>\n" +
         table_of({"", "FLOPs", "N", "D", "loss", confidence}, optimal);
}

}  // namespace

std::string to_page(const FitReport& report) {
  std::string doubtful;
  for (const auto& line : report.doubts) doubtful += "<li>" + escaped_html(line) + "</li>\n";
  if (!doubtful.empty()) doubtful = "<h2>The data do not support all of this</h2>\n<ul>\n" + doubtful + "</ul>\n";
  return words(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>Scaling law</title>\n<style>",
      style,
      "</style>\n</head>\n<body>\n<main>\n<h1>Scaling law</h1>\n<p>L(N, D) = E + A / N^alpha + B / D^beta, "
      "fitted to ",
      report.points.size(), " points. ", escaped_html(report.counted), "</p>\n", doubtful, "<h2>IsoFLOP curves</h2>\n",
      isoflop_curves(report), "<h2>Compute-optimal size and tokens</h2>\n", optimal_curves(report), tables_of(report),
      "</main>\n</body>\n</html>\n");
}

}  // namespace cloze
