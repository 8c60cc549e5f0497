#include "evaluation/tasks/layer_curve.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/report/chart.h"
#include "run/records/suite_units.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string cell_of(const Score& score) { return score.is_defined() ? score_cell(score.value, score.metric) : "-"; }

json or_null(double value) { return std::isnan(value) ? json() : json(value); }

/// One end of the interval of the test part; NaN for none.
double end_of(const LayerPoint& point, double Bounds::* end) {
  return point.test.interval ? *point.test.interval.*end : std::nan("");
}

/// The points of a series; those without a value are left out.
template <class ValueOf>
std::vector<PlotPoint> points_of(const LayerCurve& curve, const ValueOf& value_of) {
  std::vector<PlotPoint> points;
  for (const auto& one : curve.points) {
    const double value = value_of(one);
    if (!std::isnan(value)) points.push_back({static_cast<double>(one.layer), in_unit(value, curve.metric)});
  }
  return points;
}

}  // namespace

Table table_of(const LayerCurve& curve) {
  const auto name = metric_words(curve.metric);
  Table table{.header = columns_of_numbers({"layer", "valid " + name, "test " + name, "interval"})};
  for (const auto& [layer, valid, test] : curve.points)
    table.rows.push_back({std::to_string(layer), cell_of(valid), cell_of(test), interval_cell(test)});
  drop_empty_columns(table);
  return table;
}

std::string verdict_of(const LayerCurve& curve) {
  const auto& best = curve.points.at(curve.best);
  if (!best.valid.is_defined())
    return concat("none of ", curve.points.size(), " layers has ", curve.metric, " on the valid part");
  const auto* unit = is_proportion(curve.metric) ? " %" : "";
  return concat("the best of ", curve.points.size(), " layers on the valid part is ", best.layer, ", with ",
                curve.metric, " ", cell_of(best.valid), unit, "; its test figure is ", cell_of(best.test), unit);
}

json to_json(const LayerCurve& curve) {
  auto points = json::array();
  for (const auto& point : curve.points) {
    const auto& [layer, valid, test] = point;
    points.push_back({{"layer", layer},
                      {"valid", {{"value", or_null(valid.value)}, {"count", valid.count}}},
                      {"test",
                       {{"value", or_null(test.value)},
                        {"low", or_null(end_of(point, &Bounds::low))},
                        {"high", or_null(end_of(point, &Bounds::high))},
                        {"count", test.count}}}});
  }
  return points;
}

std::string layers_svg(const LayerCurve& curve) {
  Chart chart{.x_label = "layer", .y_label = metric_words(curve.metric)};
  ChartSeries interval{.title = "95 % interval of the test part",
                       .mark = ChartMark::band,
                       .colour = 2,
                       .points = points_of(curve, [](const LayerPoint& one) { return end_of(one, &Bounds::high); }),
                       .low = points_of(curve, [](const LayerPoint& one) { return end_of(one, &Bounds::low); })};
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
