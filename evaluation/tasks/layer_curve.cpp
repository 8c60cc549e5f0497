#include "evaluation/tasks/layer_curve.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/report/chart.h"
#include "run/records/suite_units.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string cell_of(const std::optional<double>& value, const std::string& metric) {
  return value ? figure_cell(*value, metric) : "-";
}

json json_of(const std::optional<double>& value) { return value ? json(*value) : json(); }

/// The points of a series; those without a value are left out.
template <class ValueOf>
std::vector<PlotPoint> points_of(const LayerCurve& curve, const ValueOf& value_of) {
  std::vector<PlotPoint> points;
  for (const auto& one : curve.points) {
    const std::optional<double> value = value_of(one);
    if (value) points.push_back({static_cast<double>(one.layer), in_unit(*value, curve.metric)});
  }
  return points;
}

}  // namespace

Table table_of(const LayerCurve& curve) {
  const auto name = metric_words(curve.metric);
  Table table{.header = columns_of_numbers({"layer", "valid " + name, "test " + name, "interval"})};
  for (const auto& [layer, valid, test] : curve.points) {
    const bool has_interval = test.low && test.high;
    table.rows.push_back({std::to_string(layer), cell_of(valid.value, curve.metric), cell_of(test.value, curve.metric),
                          has_interval ? concat("[", figure_cell(*test.low, curve.metric), ", ",
                                                figure_cell(*test.high, curve.metric), "]")
                                       : ""});
  }
  drop_empty_columns(table);
  return table;
}

std::string verdict_of(const LayerCurve& curve) {
  const auto& best = curve.points.at(curve.best);
  if (!best.valid.value)
    return concat("none of ", curve.points.size(), " layers has ", curve.metric, " on the valid part");
  const auto* unit = is_proportion(curve.metric) ? " %" : "";
  return concat("the best of ", curve.points.size(), " layers on the valid part is ", best.layer, ", with ",
                curve.metric, " ", cell_of(best.valid.value, curve.metric), unit, "; its test figure is ",
                cell_of(best.test.value, curve.metric), unit);
}

json to_json(const LayerCurve& curve) {
  auto points = json::array();
  for (const auto& [layer, valid, test] : curve.points)
    points.push_back({{"layer", layer},
                      {"valid", {{"value", json_of(valid.value)}, {"count", valid.count}}},
                      {"test",
                       {{"value", json_of(test.value)},
                        {"low", json_of(test.low)},
                        {"high", json_of(test.high)},
                        {"count", test.count}}}});
  return points;
}

std::string layers_svg(const LayerCurve& curve) {
  Chart chart{.x_label = "layer", .y_label = metric_words(curve.metric)};
  ChartSeries interval{.title = "95 % interval of the test part",
                       .mark = ChartMark::band,
                       .colour = 2,
                       .points = points_of(curve, [](const LayerPoint& one) { return one.test.high; }),
                       .low = points_of(curve, [](const LayerPoint& one) { return one.test.low; })};
  if (!interval.points.empty() && interval.points.size() == interval.low.size())
    chart.series.push_back(std::move(interval));
  chart.series.push_back(
      {.title = "valid", .mark = ChartMark::dots, .colour = 1, .points = points_of(curve, [](const LayerPoint& one) {
                                                                 return one.valid.value;
                                                               })});
  chart.series.push_back(
      {.title = "test", .mark = ChartMark::dots, .colour = 2, .points = points_of(curve, [](const LayerPoint& one) {
                                                                return one.test.value;
                                                              })});
  return chart_svg(curve.task + ": " + curve.metric + " by layer", {chart});
}

}  // namespace cloze
