#include "tasks/scores/reliability.h"

#include <algorithm>
#include <array>

#include "core/report/chart.h"
#include "core/text.h"
#include "tasks/scores/score_order.h"
#include "tasks/scores/temperature.h"

namespace cloze {

namespace {

/// A dot for each bin that has items: its mean confidence, its accuracy.
ChartSeries reliability_of(const std::string& title, size_t colour, const std::vector<TaskItem>& items,
                           const std::vector<TaskPrediction>& predictions) {
  struct Bar {
    double count = 0, confidence = 0, right = 0;
  };
  std::array<Bar, confidence_bins> all;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto& p = predictions[i].probabilities;
    const auto label = std::ranges::max_element(p) - p.begin();
    const double confidence = p[static_cast<size_t>(label)];
    auto& bar = all[bin_of_confidence(confidence)];
    ++bar.count;
    bar.confidence += confidence;
    bar.right += items[i].gold.label == label;
  }
  ChartSeries series{.title = title, .mark = ChartMark::dots, .colour = colour};
  for (const auto& bar : all) {
    if (bar.count == 0) continue;
    series.points.push_back({bar.confidence / bar.count, bar.right / bar.count});
    series.hints.push_back(concat(bar.count, " items: confidence ", fixed(bar.confidence / bar.count, 3), ", right ",
                                  fixed(bar.right / bar.count, 3)));
  }
  return series;
}

}  // namespace

std::string reliability_svg(const std::string& title, const std::vector<TaskItem>& items,
                            const std::vector<TaskPrediction>& predictions, double temperature) {
  auto calibrated = predictions;
  for (auto& one : calibrated) one.probabilities = at_temperature(one.probabilities, temperature);
  Chart chart{.x_label = "confidence", .y_label = "accuracy"};
  chart.x = chart.y = nice_axis(0, 1, 5, /*loose=*/true);
  chart.series = {{.title = "as sure as right", .mark = ChartMark::dashes, .points = {{0, 0}, {1, 1}}},
                  reliability_of("as predicted", 1, items, predictions),
                  reliability_of("at temperature " + fixed(temperature, 2), 2, items, calibrated)};
  return chart_svg(title + ": accuracy over confidence", {chart});
}

}  // namespace cloze
