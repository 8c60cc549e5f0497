// The page of a fit.
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/log.h"
#include "core/page.h"
#include "core/plot.h"
#include "core/text.h"
#include "study/fit_report.h"

namespace cloze {

namespace {

constexpr size_t budgets_shown = 6;  // as many as the page has colours

std::string range(const Interval& interval, int count) {
  return digits(interval.low, count) + " to " + digits(interval.high, count);
}

std::string colour(size_t number) { return "a" + std::to_string(1 + number); }

/// An axis over finite values with some room at both ends.
Axis axis_over(const std::vector<double>& values, double room) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double margin = room * std::max(*high - *low, 1e-9);
  return nice_axis(*low - margin, *high + margin, 6, false);
}
Axis log_axis_over(const std::vector<double>& values, double room) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return log_axis(*low / (1 + room), *high * (1 + room));
}

double flops_of(const ScalingPoint& point) { return training_flops(point.size, point.tokens); }

/// The budgets of the curves, from that of the smallest point to that of the largest.
std::vector<double> budgets_of(const FitReport& report) {
  std::vector<double> of_points;
  for (const auto& point : report.points) of_points.push_back(flops_of(point));
  const auto [low, high] = std::minmax_element(of_points.begin(), of_points.end());
  std::vector<double> budgets;
  for (size_t k = 0; k < budgets_shown; ++k)
    budgets.push_back(*low * std::pow(*high / *low, static_cast<double>(k) / (budgets_shown - 1)));
  return budgets;
}

size_t nearest(const std::vector<double>& budgets, double flops) {
  const auto far = [&](double budget) { return std::abs(std::log(budget / flops)); };
  const auto found =
      std::min_element(budgets.begin(), budgets.end(), [&](double a, double b) { return far(a) < far(b); });
  return static_cast<size_t>(found - budgets.begin());
}

std::string plot_of(const std::string& y_label, const LineChart& chart) {
  return words("<p class=\"soft\">", y_label, "</p>\n<div class=\"plot\">", to_svg(chart), "</div>\n");
}

/// Dots of the points, in the colour of the nearest budget, and rings where the law has its smallest loss.
std::vector<PlotDot> dots_of(const FitReport& report, const std::vector<double>& budgets) {
  std::vector<PlotDot> dots;
  for (const auto& point : report.points)
    dots.push_back({.style = colour(nearest(budgets, flops_of(point))),
                    .title = words(point.name, ": ", with_prefix(point.size), " parameters, ",
                                   with_prefix(point.tokens), " tokens, loss ", digits(point.loss, 5)),
                    .at = {point.size, point.loss}});
  for (size_t k = 0; k < budgets.size(); ++k) {
    const auto best = compute_optimal(report.fit.law, budgets[k]);
    dots.push_back({.style = "ring " + colour(k),
                    .title = words("best of ", digits(budgets[k], 2), " FLOPs: ", with_prefix(best.size),
                                   " parameters, loss ", digits(best.loss, 5)),
                    .at = {best.size, best.loss}});
  }
  return dots;
}

std::string isoflop_curves(const FitReport& report) {
  const auto& law = report.fit.law;
  const auto budgets = budgets_of(report);
  std::vector<double> sizes, losses;
  for (const auto& point : report.points) {
    sizes.push_back(point.size);
    losses.push_back(point.loss);
  }
  for (const double flops : budgets)
    if (const double best = compute_optimal(law, flops).loss; std::isfinite(best)) losses.push_back(best);
  LineChart chart{.title = "IsoFLOP curves",
                  .x_label = "parameters N",
                  .x = log_axis_over(sizes, 0.3),
                  .y = axis_over(losses, 0.05),
                  .dots = dots_of(report, budgets)};
  std::vector<LegendEntry> legend;
  for (size_t k = 0; k < budgets.size(); ++k) {
    auto& line = chart.lines.emplace_back(PlotLine{.style = colour(k)});
    for (int i = 0; i <= 120; ++i) {
      const double size = chart.x.at(i / 120.0);
      line.points.push_back({size, law.loss(size, budgets[k] / 6 / size)});
    }
    legend.push_back({colour(k), digits(budgets[k], 2) + " FLOPs"});
  }
  return html_legend(legend) + plot_of("loss", chart) +
         "<p class=\"soft\">Lines: the law at equal FLOPs, D = C / 6 N; rings: its smallest loss. Dots: points, in the "
         "colour of the nearest budget.</p>\n";
}

/// A compute-optimal quantity over the FLOPs, with its interval.
struct OptimalCurve {
  std::vector<PlotPoint> middle{}, low{}, high{};
};
OptimalCurve optimal_curve(const FitReport& report, const Axis& x, double Allocation::* quantity) {
  OptimalCurve curve;
  for (int i = 0; i <= 60; ++i) {
    const double flops = x.at(i / 60.0);
    const auto value = [=](const ScalingLaw& law) { return compute_optimal(law, flops).*quantity; };
    const auto interval = report.fit.interval(value);
    curve.middle.push_back({flops, value(report.fit.law)});
    curve.low.push_back({flops, interval.low});
    curve.high.push_back({flops, interval.high});
  }
  return curve;
}

std::string optimal_curves(const FitReport& report) {
  auto budgets = budgets_of(report);
  for (const auto& one : report.optimal) budgets.push_back(one.flops.value);
  const auto x = log_axis_over(budgets, 0.2);
  const std::vector<OptimalCurve> curves{optimal_curve(report, x, &Allocation::size),
                                         optimal_curve(report, x, &Allocation::tokens)};
  std::vector<double> reached;
  for (const auto& curve : curves)
    for (const auto* line : {&curve.middle, &curve.low, &curve.high})
      for (const auto& point : *line)
        if (std::isfinite(point.y) && point.y > 0) reached.push_back(point.y);
  if (reached.empty()) return "<p>The law has no compute-optimal size.</p>\n";
  LineChart chart{
      .title = "Compute-optimal size and tokens", .x_label = "FLOPs C", .x = x, .y = log_axis_over(reached, 0.2)};
  for (size_t k = 0; k < curves.size(); ++k) {
    if (report.has_intervals) chart.bands.push_back({.style = colour(k), .low = curves[k].low, .high = curves[k].high});
    chart.lines.push_back({.style = colour(k), .points = curves[k].middle});
  }
  return html_legend({{colour(0), words("parameters, N ~ C^", digits(report.exponents[0].value, 3))},
                      {colour(1), words("tokens, D ~ C^", digits(report.exponents[1].value, 3))}}) +
         plot_of("parameters N, tokens D", chart);
}

std::string tables_of(const FitReport& report) {
  const auto interval = [&](const Estimate& one) { return report.has_intervals ? range(one.interval, 4) : ""; };
  const auto confidence = digits(100 * report.fit.confidence, 3) + " % interval";
  std::vector<std::vector<std::string>> law, optimal;
  for (const auto& one : report.parameters) law.push_back({one.name, digits(one.value, 5), interval(one)});
  for (const auto& one : report.exponents) law.push_back({one.name, digits(one.value, 4), interval(one)});
  const auto add = [&](const char* kind, const PredictedRun& one) {
    optimal.push_back({kind, digits(one.flops.value, 3), with_prefix(one.size.value), with_prefix(one.tokens.value),
                       digits(one.loss.value, 5), interval(one.loss)});
  };
  for (const auto& one : report.optimal) add("compute-optimal", one);
  for (const auto& one : report.predicted) add("asked for", one);
  return html_section("Estimates", html_table({"", "value", confidence}, law, 1)) +
         html_section("Predictions", html_table({"", "FLOPs", "N", "D", "loss", confidence}, optimal, 1));
}

}  // namespace

std::string to_page(const FitReport& report) {
  const auto head = words("<h1>Scaling law</h1>\n<p>L(N, D) = E + A / N^alpha + B / D^beta, fitted to ",
                          report.points.size(), " points. ", escaped_html(report.counted), "</p>\n");
  const auto doubtful =
      report.doubts.empty() ? "" : html_section("The data do not support all of this", html_list(report.doubts));
  return html_page("Scaling law", head + doubtful + html_section("IsoFLOP curves", isoflop_curves(report)) +
                                      html_section("Compute-optimal size and tokens", optimal_curves(report)) +
                                      tables_of(report));
}

}  // namespace cloze
