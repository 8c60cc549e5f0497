#include "study/report/fit_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/config/config.h"
#include "core/log.h"
#include "core/report/chart.h"
#include "core/report/report.h"
#include "core/text.h"

namespace cloze {

namespace {

using nlohmann::json;

template <class Value>
Estimate estimate(const ScalingFit& fit, const std::string& name, const Value& value) {
  return {.name = name, .value = value(fit.law), .interval = fit.interval(value)};
}

Estimate exactly(const std::string& name, double value) { return {name, value, {value, value}}; }

PredictedRun optimal_for(const ScalingFit& fit, double flops) {
  const auto part = [&](const char* name, double Allocation::* field) {
    return estimate(fit, name, [=](const ScalingLaw& law) { return compute_optimal(law, flops).*field; });
  };
  return {.flops = exactly("flops", flops),
          .size = part("size", &Allocation::size),
          .tokens = part("tokens", &Allocation::tokens),
          .loss = part("loss", &Allocation::loss)};
}

PredictedRun predicted_at(const ScalingFit& fit, double size, double tokens) {
  return {.flops = exactly("flops", training_flops(size, tokens)),
          .size = exactly("size", size),
          .tokens = exactly("tokens", tokens),
          .loss = estimate(fit, "loss", [=](const ScalingLaw& law) { return law.loss(size, tokens); })};
}

double largest_flops(const std::vector<ScalingPoint>& points) {
  double highest = 0;
  for (const auto& point : points) highest = std::max(highest, training_flops(point.size, point.tokens));
  return highest;
}

void measure_deviations(FitReport& report) {
  std::vector<double> all;
  for (const auto& point : report.points) {
    all.push_back(std::abs(std::log(point.loss / report.fit.law.loss(point.size, point.tokens))));
    if (all.back() < report.largest_deviation) continue;
    report.largest_deviation = all.back();
    report.farthest = point.name;
  }
  std::sort(all.begin(), all.end());
  report.deviation = quantile(all, 0.5);
}

std::string range(const Interval& interval, std::string (*number)(double)) {
  return number(interval.low) + " to " + number(interval.high);
}

std::string five(double value) { return digits(value, 5); }
std::string three(double value) { return digits(value, 3); }
std::string percent(double fraction) { return digits(100 * fraction, 2) + " %"; }

std::string points_text(const FitReport& report) {
  const auto span = [&](double ScalingPoint::* field) {
    const auto [low, high] = std::ranges::minmax(report.points, {}, field);
    return with_prefix(low.*field) + " to " + with_prefix(high.*field);
  };
  const auto runs = std::ranges::max(runs_of(report.points)) + 1;
  const auto of_runs = runs < report.points.size() ? concat(" of ", runs, " runs") : "";
  return concat(report.points.size(), of_runs, ", N ", span(&ScalingPoint::size), " parameters, D ",
                span(&ScalingPoint::tokens), " tokens");
}

Table estimate_table(const FitReport& report) {
  Table table{.header = {"", {"value", ColumnKind::number}, percent(report.fit.confidence) + " interval"}};
  const auto add = [&](const Estimate& one, const std::string& name) {
    table.rows.push_back({name, five(one.value), report.has_intervals ? range(one.interval, five) : ""});
  };
  for (const auto& one : report.parameters) add(one, one.name);
  add(report.exponents[0], "a, N ~ C^a");
  add(report.exponents[1], "b, D ~ C^b");
  drop_empty_columns(table);
  return table;
}

Table prediction_table(const FitReport& report, const std::vector<PredictedRun>& predictions) {
  constexpr auto number = ColumnKind::number;
  Table table{.header = {"C [FLOPs]", {"N", number}, {"D", number}, {"D / N", number, 1}, {"loss", number}, ""}};
  const auto with_range = [&](const Estimate& value, std::string (*text)(double)) {
    const bool is_wide = report.has_intervals && value.interval.low < value.interval.high;
    return text(value.value) + (is_wide ? " (" + range(value.interval, text) + ")" : "");
  };
  for (const auto& one : predictions) {
    const double beyond = one.flops.value / largest_flops(report.points);
    table.rows.push_back({three(one.flops.value), with_range(one.size, with_prefix),
                          with_range(one.tokens, with_prefix), three(one.tokens.value / one.size.value),
                          with_range(one.loss, five),
                          beyond > 1.01 ? concat(three(beyond), " times the largest point") : ""});
  }
  drop_empty_columns(table);
  return table;
}

constexpr size_t budgets_shown = 6;  // as many as a chart has colours

/// An axis over finite values with some room at both ends.
Axis axis_over(const std::vector<double>& values, double room) {
  const auto [low, high] = std::ranges::minmax(values);
  const double margin = room * std::max(high - low, 1e-9);
  return nice_axis(low - margin, high + margin, 6, false);
}
Axis log_axis_over(const std::vector<double>& values, double room) {
  const auto [low, high] = std::ranges::minmax(values);
  return log_axis(low / (1 + room), high * (1 + room));
}

double flops_of(const ScalingPoint& point) { return training_flops(point.size, point.tokens); }

/// The budgets of the curves, from that of the smallest point to that of the largest.
std::vector<double> budgets_of(const FitReport& report) {
  std::vector<double> of_points;
  for (const auto& point : report.points) of_points.push_back(flops_of(point));
  const auto [low, high] = std::ranges::minmax(of_points);
  std::vector<double> budgets;
  for (size_t k = 0; k < budgets_shown; ++k)
    budgets.push_back(low * std::pow(high / low, static_cast<double>(k) / (budgets_shown - 1)));
  return budgets;
}

size_t nearest(const std::vector<double>& budgets, double flops) {
  const auto distance = [&](double budget) { return std::abs(std::log(budget / flops)); };
  return static_cast<size_t>(std::ranges::min_element(budgets, {}, distance) - budgets.begin());
}

/// The law at equal FLOPs, its smallest losses, and the points in the colour of the nearest budget.
std::string isoflop_chart(const FitReport& report) {
  const auto& law = report.fit.law;
  const auto budgets = budgets_of(report);
  std::vector<double> sizes, losses;
  for (const auto& point : report.points) {
    sizes.push_back(point.size);
    losses.push_back(point.loss);
  }
  std::vector<ChartSeries> dots(budgets.size()), rings;
  std::vector<std::pair<std::string, std::string>> legend;
  Chart chart{.title = "IsoFLOP curves", .x_label = "parameters N", .y_label = "loss", .x = log_axis_over(sizes, 0.3)};
  for (size_t k = 0; k < budgets.size(); ++k) {
    const auto best = compute_optimal(law, budgets[k]);
    if (std::isfinite(best.loss)) losses.push_back(best.loss);
    auto& line = chart.series.emplace_back(ChartSeries{.colour = k + 1});
    for (int i = 0; i <= 120; ++i) {
      const double size = chart.x->at(i / 120.0);
      line.points.push_back({size, law.loss(size, budgets[k] / 6 / size)});
    }
    const auto flops = digits(budgets[k], 2) + " FLOPs";
    legend.emplace_back(colour_classes(k + 1), flops);
    dots[k] = {.mark = ChartMark::points, .colour = k + 1};
    rings.push_back(
        {.mark = ChartMark::rings,
         .colour = k + 1,
         .points = {{best.size, best.loss}},
         .hints = {concat("best of ", flops, ": ", with_prefix(best.size), " parameters, loss ", five(best.loss))}});
  }
  for (const auto& point : report.points) {
    auto& series = dots[nearest(budgets, flops_of(point))];
    series.points.push_back({point.size, point.loss});
    series.hints.push_back(concat(point.name, ": ", with_prefix(point.size), " parameters, ", with_prefix(point.tokens),
                                  " tokens, loss ", five(point.loss)));
  }
  for (auto* marks : {&dots, &rings}) std::ranges::move(*marks, std::back_inserter(chart.series));
  chart.y = axis_over(losses, 0.05);
  return legend_html(legend) + chart_html(chart) +
         html_note(
             "Lines: the law at equal FLOPs, D = C / 6 N; rings: its smallest loss. Dots: points, in the colour "
             "of the nearest budget.");
}

/// The compute-optimal size and tokens over the FLOPs, with their intervals.
std::string optimal_chart(const FitReport& report) {
  auto budgets = budgets_of(report);
  for (const auto& one : report.optimal) budgets.push_back(one.flops.value);
  Chart chart{.title = "Compute-optimal size and tokens",
              .x_label = "FLOPs C",
              .y_label = "parameters N, tokens D",
              .x = log_axis_over(budgets, 0.2)};
  std::vector<double> reached;
  std::vector<ChartSeries> lines;
  for (const auto quantity : {&Allocation::size, &Allocation::tokens}) {
    ChartSeries line{.colour = lines.size() + 1}, band{.mark = ChartMark::band, .colour = lines.size() + 1};
    for (int i = 0; i <= 60; ++i) {
      const double flops = chart.x->at(i / 60.0);
      const auto value = [=](const ScalingLaw& law) { return compute_optimal(law, flops).*quantity; };
      const auto interval = report.fit.interval(value);
      line.points.push_back({flops, value(report.fit.law)});
      band.low.push_back({flops, interval.low});
      band.points.push_back({flops, interval.high});
      for (const double y : {line.points.back().y, interval.low, interval.high})
        if (std::isfinite(y) && y > 0) reached.push_back(y);
    }
    if (report.has_intervals) chart.series.push_back(std::move(band));
    lines.push_back(std::move(line));
  }
  if (reached.empty()) return html_note("The law has no compute-optimal size.");
  std::ranges::move(lines, std::back_inserter(chart.series));
  chart.y = log_axis_over(reached, 0.2);
  return legend_html({{colour_classes(1), "parameters, N ~ C^" + three(report.exponents[0].value)},
                      {colour_classes(2), "tokens, D ~ C^" + three(report.exponents[1].value)}}) +
         chart_html(chart);
}

/// All parts of the report; those of a page have charts.
Report document_of(const FitReport& fit, bool has_charts) {
  Report report{.title = "Scaling law",
                .question = "L(N, D) = E + A / N^alpha + B / D^beta",
                .facts = {{"points", points_text(fit)}}};
  if (!fit.counted.empty()) report.facts.emplace_back("counted", fit.counted);
  report.facts.emplace_back(
      "deviation", concat(percent(fit.deviation), " of the loss in the median, at most ",
                          percent(fit.largest_deviation), fit.farthest.empty() ? "" : " (" + fit.farthest + ")"));
  const auto chart = [&](std::string (*draw)(const FitReport&)) { return has_charts ? draw(fit) : ""; };
  report.parts = {{.heading = "Estimates", .tables = {estimate_table(fit)}},
                  {.heading = "The data do not support all of this", .sentences = fit.doubts},
                  {.heading = "IsoFLOP curves", .chart = chart(isoflop_chart), .shown = Shown::pages},
                  {.heading = "Compute-optimal, C = 6 N D",
                   .tables = {prediction_table(fit, fit.optimal)},
                   .chart = chart(optimal_chart)}};
  if (!fit.predicted.empty())
    report.parts.push_back({.heading = "Predicted", .tables = {prediction_table(fit, fit.predicted)}});
  return report;
}

json to_json(const Estimate& one, bool has_interval) {
  json all{{"value", one.value}};
  if (has_interval) all["interval"] = {one.interval.low, one.interval.high};
  return all;
}

json to_json(const PredictedRun& one, bool has_intervals) {
  return {{"flops", one.flops.value},
          {"size", to_json(one.size, has_intervals)},
          {"tokens", to_json(one.tokens, has_intervals)},
          {"loss", to_json(one.loss, has_intervals)}};
}

}  // namespace

FitReport make_fit_report(const std::vector<ScalingPoint>& points, const FitQuestion& question) {
  FitReport report{.points = points, .counted = question.counted};
  report.fit = fit_scaling_law(points, question.options);
  const auto& fit = report.fit;
  report.has_intervals = !fit.resampled.empty();
  for (size_t k = 0; k < law_names.size(); ++k)
    report.parameters.push_back(estimate(fit, law_names[k], [=](const ScalingLaw& law) { return values_of(law)[k]; }));
  report.exponents = {estimate(fit, "a", size_exponent), estimate(fit, "b", tokens_exponent)};
  auto budgets = question.budgets;
  if (budgets.empty()) budgets = {largest_flops(points), 10 * largest_flops(points)};
  for (const double flops : budgets) report.optimal.push_back(optimal_for(fit, flops));
  for (const auto& [size, tokens] : question.sizes) report.predicted.push_back(predicted_at(fit, size, tokens));
  measure_deviations(report);
  report.doubts = doubts(fit, points);
  return report;
}

std::string to_text(const FitReport& report, int64_t columns) { return to_text(document_of(report, false), columns); }

std::string to_page(const FitReport& report) { return to_html(document_of(report, true)); }

std::string to_csv(const FitReport& report) {
  Table table{.header = {"quantity", "flops", "value", "low", "high"}};
  const auto add = [&](const std::string& name, const std::string& flops, const Estimate& one) {
    const bool has = report.has_intervals;
    table.rows.push_back({name, flops, shortest(one.value), has ? shortest(one.interval.low) : "",
                          has ? shortest(one.interval.high) : ""});
  };
  for (const auto* estimates : {&report.parameters, &report.exponents})
    for (const auto& one : *estimates) add(one.name, "", one);
  for (const auto& [kind, runs] : {std::pair{"optimal ", &report.optimal}, {"predicted ", &report.predicted}})
    for (const auto& one : *runs)
      for (const auto* part : {&one.size, &one.tokens, &one.loss})
        add(kind + part->name, shortest(one.flops.value), *part);
  return to_csv(table);
}

json to_json(const FitReport& report) {
  json all{{"points", report.points.size()},    {"counted", report.counted},
           {"objective", report.fit.objective}, {"confidence", report.fit.confidence},
           {"deviation", report.deviation},     {"law", json::object()},
           {"exponents", json::object()},       {"optimal", json::array()},
           {"predicted", json::array()},        {"doubts", report.doubts}};
  const bool with = report.has_intervals;
  for (const auto& one : report.parameters) all["law"][one.name] = to_json(one, with);
  for (const auto& one : report.exponents) all["exponents"][one.name] = to_json(one, with);
  for (const auto& one : report.optimal) all["optimal"].push_back(to_json(one, with));
  for (const auto& one : report.predicted) all["predicted"].push_back(to_json(one, with));
  return all;
}

}  // namespace cloze
