#include "run/records/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/report/chart.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

std::vector<double> smoothed(const std::vector<LossPoint>& points) {
  const auto n = static_cast<int64_t>(points.size());
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t reach = 2 + i / 8, first = std::max<int64_t>(0, i - reach), end = std::min(n, i + reach + 1);
    const auto middle = points[static_cast<size_t>(i)];
    double furthest = 0;
    for (int64_t k = first; k < end; ++k)
      furthest = std::max(furthest, std::abs(points[static_cast<size_t>(k)].x - middle.x));
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;  // sums, x from the middle
    for (int64_t k = first; k < end; ++k) {
      const double x = points[static_cast<size_t>(k)].x - middle.x, y = points[static_cast<size_t>(k)].y;
      const double near = furthest > 0 ? 1 - std::pow(std::abs(x) / (1.001 * furthest), 3) : 1;
      const double weight = near * near * near;  // tricube
      w += weight;
      wx += weight * x;
      wy += weight * y;
      wxx += weight * x * x;
      wxy += weight * x * y;
    }
    const double spread = w * wxx - wx * wx;
    values.push_back(spread > 1e-12 * w * wxx ? (wxx * wy - wx * wxy) / spread : wy / w);
  }
  return values;
}

namespace {

/// The curves of one loss, with its baseline.
struct Panel {
  std::string name;  ///< `mlm`
  std::vector<LossPoint> training{};
  std::vector<std::pair<std::string, std::vector<LossPoint>>> held_out{};  ///< by name: `mlm`, `mlm:0.4`
  double baseline = 0;                                                     ///< 0: none
  bool of_tokens = true;  ///< false: of labels, whose baseline is their majority
};

/// Whether the loss `name` is one of tokens: that of an objective which predicts them, or of a generator.
bool is_of_tokens(const std::string& name, const Objectives& objectives) {
  return std::none_of(objectives.begin(), objectives.end(), [&](const ObjectiveConfig& objective) {
    return kind_of(objective) == name && !as_kind(objective).predicts_tokens();
  });
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Panel& panel_of(std::vector<Panel>& panels, const std::string& name) {
  for (auto& panel : panels)
    if (panel.name == name) return panel;
  return panels.emplace_back(Panel{.name = name});
}

void add_held_out(std::vector<Panel>& panels, const json& losses, double step) {
  for (const auto& [key, value] : losses.items()) {
    if (!ends_with(key, "_loss") || !value.is_number()) continue;
    auto name = key.substr(0, key.size() - 5);
    const bool baseline = ends_with(name, "_baseline");
    if (baseline) name.resize(name.size() - 9);
    auto& panel = panel_of(panels, name.substr(0, name.find(':')));
    if (baseline) {
      panel.baseline = value;
      continue;
    }
    auto curve =
        std::find_if(panel.held_out.begin(), panel.held_out.end(), [&](const auto& one) { return one.first == name; });
    if (curve == panel.held_out.end()) curve = panel.held_out.insert(curve, {name, {}});
    curve->second.push_back({step, value});
  }
}

/// False for a damaged line.
bool add_row(std::vector<Panel>& panels, const std::string& line) {
  try {
    const auto row = parse_json(line);
    const double step = row.at("step");
    for (const auto& [name, part] : row.items())
      if (part.is_object() && part.contains("loss") && part.value("count", 0) > 0)
        panel_of(panels, name).training.push_back({step, part["loss"]});
    if (row.contains("held_out")) add_held_out(panels, row["held_out"], step);
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

std::vector<Panel> panels_of(const std::string& metrics) {
  LogLines lines(metrics);
  std::vector<Panel> panels;
  int64_t number = 0, damaged = 0, first = 0;
  for (std::string line; lines.next(line);) {
    ++number;
    if (add_row(panels, line)) continue;
    if (damaged++ == 0) first = number;
  }
  if (damaged > 0)
    log_warning("train", concat(metrics, ": ", damaged, " damaged lines, the first of them line ", first,
                                "; the loss curve is drawn without them"));
  return panels;
}

constexpr size_t max_bins = 2000;  // more than the plot has pixel columns

/// The points that `add` makes from each bin; every bin has at least one point.
template <class Add>
std::vector<LossPoint> in_bins(const std::vector<LossPoint>& points, const Add& add) {
  const size_t bins = std::min(points.size(), max_bins);
  std::vector<LossPoint> binned;
  for (size_t bin = 0; bin < bins; ++bin)
    add(points.begin() + static_cast<int64_t>(bin * points.size() / bins),
        points.begin() + static_cast<int64_t>((bin + 1) * points.size() / bins), binned);
  return binned;
}

/// Means of the bins, few enough to smooth quickly.
std::vector<LossPoint> means(const std::vector<LossPoint>& points) {
  return in_bins(points, [](auto first, auto end, std::vector<LossPoint>& binned) {
    LossPoint sum;
    for (auto point = first; point != end; ++point) {
      sum.x += point->x;
      sum.y += point->y;
    }
    const auto n = static_cast<double>(end - first);
    binned.push_back({sum.x / n, sum.y / n});
  });
}

/// Minimum and maximum of each bin, which keep every peak visible.
std::vector<LossPoint> extremes(const std::vector<LossPoint>& points) {
  return in_bins(points, [](auto first, auto end, std::vector<LossPoint>& binned) {
    const auto [low, high] =
        std::minmax_element(first, end, [](const LossPoint& a, const LossPoint& b) { return a.y < b.y; });
    binned.push_back(low < high ? *low : *high);
    if (low != high) binned.push_back(low < high ? *high : *low);
  });
}

/// The chart of a panel.
Chart chart_of(const Panel& panel, bool is_last) {
  Chart chart{.title = panel.name, .x_label = is_last ? "step" : "", .y_label = "loss [nats per prediction]"};
  double first = INFINITY, last = -INFINITY;  // of all points, over which a baseline reaches
  const auto add = [&](ChartSeries series) {
    for (const auto& point : series.points) {
      first = std::min(first, point.x);
      last = std::max(last, point.x);
    }
    chart.series.push_back(std::move(series));
  };
  if (!panel.training.empty()) {
    auto middle = means(panel.training);
    const auto smooth = smoothed(middle);
    for (size_t i = 0; i < middle.size(); ++i) middle[i].y = smooth[i];
    add({.title = "training", .mark = ChartMark::faint, .colour = 1, .points = extremes(panel.training)});
    add({.title = "training, smoothed", .mark = ChartMark::line, .colour = 1, .points = std::move(middle)});
  }
  for (size_t k = 0; k < panel.held_out.size(); ++k) {
    const auto& [name, points] = panel.held_out[k];
    add({.title = panel.held_out.size() > 1 ? "held out, " + name : "held out",
         .mark = ChartMark::dots,
         .colour = 2 + k % 5,
         .points = points});
  }
  if (panel.baseline > 0 && first <= last)
    add({.title = concat(panel.of_tokens ? "unigram" : "majority", ", held out"),
         .mark = ChartMark::dashes,
         .colour = 0,
         .points = {{first, panel.baseline}, {last, panel.baseline}}});
  return chart;
}

}  // namespace

bool draw_loss(const std::string& run, const Objectives& objectives, double unigram_loss) {
  auto panels = panels_of(run + "/metrics.jsonl");
  std::erase_if(panels, [](const Panel& panel) { return panel.training.size() < 2 && panel.held_out.empty(); });
  const bool any =
      std::any_of(panels.begin(), panels.end(), [](const Panel& panel) { return panel.training.size() >= 2; });
  if (!any) return false;
  std::vector<Chart> charts;
  for (auto& panel : panels) {
    panel.of_tokens = is_of_tokens(panel.name, objectives);
    if (panel.baseline == 0 && panel.of_tokens) panel.baseline = unigram_loss;
    charts.push_back(chart_of(panel, charts.size() + 1 == panels.size()));
  }
  const auto name = fs::absolute(run).lexically_normal();
  try {
    write_atomic(run + "/loss.svg", chart_svg((name.has_filename() ? name : name.parent_path()).filename(), charts));
    return true;
  } catch (const Error& error) {
    log_warning("train", concat("no plot of the loss: ", error.what()));
    return false;
  }
}

}  // namespace cloze
