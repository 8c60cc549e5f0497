#include "study/fit_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/config.h"
#include "core/log.h"
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

/// A cell of a table, with at least one space after it.
std::string column(const std::string& text, size_t width) { return padded(text + " ", width); }

std::string range(const Interval& interval, std::string (*number)(double)) {
  return number(interval.low) + " to " + number(interval.high);
}

std::string five(double value) { return digits(value, 5); }
std::string three(double value) { return digits(value, 3); }
std::string percent(double share) { return digits(100 * share, 2) + " %"; }

std::string points_line(const FitReport& report) {
  const auto span = [&](double ScalingPoint::* field) {
    const auto [low, high] =
        std::minmax_element(report.points.begin(), report.points.end(),
                            [&](const ScalingPoint& a, const ScalingPoint& b) { return a.*field < b.*field; });
    return with_prefix((*low).*field) + " to " + with_prefix((*high).*field);
  };
  return words("points     ", report.points.size(), ", N ", span(&ScalingPoint::size), " parameters, D ",
               span(&ScalingPoint::tokens), " tokens", report.counted.empty() ? "" : "; " + report.counted, "\n");
}

std::string estimate_line(const FitReport& report, const Estimate& one, const std::string& name) {
  const auto head = column(name, 11) + column(five(one.value), 12);
  return head + (report.has_intervals ? range(one.interval, five) : "") + "\n";
}

std::string prediction_line(const FitReport& report, const PredictedRun& one) {
  const auto with_range = [&](const Estimate& value, std::string (*number)(double), size_t width) {
    auto text = number(value.value);
    if (report.has_intervals && value.interval.low < value.interval.high)
      text += " (" + range(value.interval, number) + ")";
    return column(text, width);
  };
  const double beyond = one.flops.value / largest_flops(report.points);
  return column(three(one.flops.value), 11) + with_range(one.size, with_prefix, 30) +
         with_range(one.tokens, with_prefix, 30) + column(three(one.tokens.value / one.size.value), 9) +
         with_range(one.loss, five, 28) + (beyond > 1.01 ? words(three(beyond), " times the largest point") : "") +
         "\n";
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

std::string to_text(const FitReport& report) {
  std::string text = points_line(report) + "law        L(N, D) = E + A / N^alpha + B / D^beta\n";
  if (report.has_intervals) text += column("", 23) + words(percent(report.fit.confidence), " interval\n");
  for (const auto& one : report.parameters) text += estimate_line(report, one, one.name);
  text +=
      words("deviation  ", percent(report.deviation), " of the loss in the median, at most ",
            percent(report.largest_deviation), report.farthest.empty() ? "" : words(" (", report.farthest, ")"), "\n");
  text += "\nCompute-optimal: N ~ C^a, D ~ C^b, C = 6 N D\n";
  for (const auto& one : report.exponents) text += estimate_line(report, one, one.name);
  const auto head = column("C [FLOPs]", 11) + column("N", 30) + column("D", 30) + column("D / N", 9) + "loss\n";
  text += head;
  for (const auto& one : report.optimal) text += prediction_line(report, one);
  if (!report.predicted.empty()) text += "\nPredicted\n" + head;
  for (const auto& one : report.predicted) text += prediction_line(report, one);
  if (!report.doubts.empty()) text += "\nThe data do not support all of this:\n";
  for (const auto& line : report.doubts) text += "  " + line + "\n";
  return text;
}

std::string to_csv(const FitReport& report) {
  std::string text = "quantity,flops,value,low,high\n";
  const auto line = [&](const std::string& name, const std::string& flops, const Estimate& one) {
    text += words(escaped_csv(name), ",", flops, ",", shortest(one.value), ",");
    text += report.has_intervals ? words(shortest(one.interval.low), ",", shortest(one.interval.high), "\n") : ",\n";
  };
  for (const auto& one : report.parameters) line(one.name, "", one);
  for (const auto& one : report.exponents) line(one.name, "", one);
  const auto lines = [&](const std::string& kind, const std::vector<PredictedRun>& all) {
    for (const auto& one : all)
      for (const auto* part : {&one.size, &one.tokens, &one.loss})
        line(kind + " " + part->name, shortest(one.flops.value), *part);
  };
  lines("optimal", report.optimal);
  lines("predicted", report.predicted);
  return text;
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
