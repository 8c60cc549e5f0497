// The charts of the page of a report.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/contains.h"
#include "core/report/chart.h"
#include "core/report/report.h"
#include "core/text.h"
#include "study/report/report_rows.h"

namespace cloze {

namespace {

constexpr size_t run_points = 60, mean_points = 200;  // of a curve: more than a reader sees

size_t index_of(const StudyReport& report, const std::string& arm) {
  return static_cast<size_t>(std::ranges::find(report.arms, arm, &ArmReport::name) - report.arms.begin());
}

/// Smallest and largest of some numbers.
struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double x) {
    if (!std::isfinite(x)) return;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  void add(const Interval& interval) {
    add(interval.low);
    add(interval.high);
  }
};

std::string with_caption(const std::string& body, const std::string& caption) {
  return concat("<figure>\n", body, "<figcaption>", escaped_html(caption), "</figcaption>\n</figure>\n");
}

std::string capitalised(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

/// What a curve is drawn over.
struct Currency {
  const char* id;
  const char* name;
  double (*of)(const CurvePoint&);
};
constexpr std::array<Currency, 4> currencies{{{"steps", "steps", [](const CurvePoint& p) { return p.step; }},
                                              {"tokens", "tokens", [](const CurvePoint& p) { return p.tokens; }},
                                              {"flops", "FLOPs", [](const CurvePoint& p) { return p.flops; }},
                                              {"time", "time", [](const CurvePoint& p) { return p.seconds; }}}};

/// A currency in the unit of its axis.
struct Scale {
  const Currency* currency;
  double unit = 1;
  std::string label{};
  Range range{};
  double at(const CurvePoint& point) const { return currency->of(point) / unit; }
};
Scale scale_of(const StudyReport& report, const Currency& currency) {
  Scale scale{.currency = &currency, .label = currency.name};
  Range all;
  for (const auto& run : report.runs)
    for (const auto& point : run.curve) all.add(currency.of(point));
  if (currency.id == std::string("time")) {
    scale.unit = all.high < 300 ? 1 : all.high < 3 * 3600 ? 60 : 3600;
    scale.label = concat("training time [", scale.unit == 1 ? "s" : scale.unit == 60 ? "min" : "h", "]");
  }
  scale.range = {all.low / scale.unit, all.high / scale.unit};
  return scale;
}

/// The floor in the unit of the curves; 0: not known.
double floor_of_curves(const StudyReport& report) { return traits_of(report.by).has_curve_in_unit ? report.floor : 0; }

/// What a curve is of, as CurvePoint::of.
std::string loss_of(const std::vector<CurvePoint>& curve) { return curve.empty() ? "" : curve.back().of; }

/// What the curves of a report are of, each of which has a chart: the metric, or the losses that runs have until they
/// are judged.
std::vector<std::string> drawn_losses(const StudyReport& report) {
  std::vector<std::string> all;
  for (const auto& run : report.runs)
    if (!run.curve.empty() && !contains(all, loss_of(run.curve))) all.push_back(loss_of(run.curve));
  return all;
}

/// Losses of the first tenth of a run are cut off where they would flatten the rest.
Range shown_losses(const StudyReport& report, const std::string& of) {
  double last = 0;
  for (const auto& run : report.runs)
    for (const auto& point : run.curve) last = std::max(last, point.step);
  Range range, all;
  const double floor = floor_of_curves(report);
  if (floor > 0) range.add(floor);
  for (const auto& run : report.runs)
    for (const auto& point : run.curve) {
      if (point.of != of) continue;
      all.add(point.loss);
      if (10 * point.step >= last) range.add(point.loss);
    }
  return all.high - all.low > 1.2 * (range.high - range.low) && range.low < range.high ? range : all;
}

std::vector<PlotPoint> points_of(const std::vector<CurvePoint>& curve, const Scale& scale, size_t most) {
  std::vector<PlotPoint> points;
  for (const auto& point : thinned(curve, most)) points.push_back({scale.at(point), point.loss});
  return points;
}

/// A line of an arm and the band around it; values of the band are `low` and `high` of each point.
template <class Low, class High>
void add_band(Chart& chart, size_t arm, const std::vector<PlotPoint>& mean, const Low& low, const High& high) {
  ChartSeries band{.mark = ChartMark::band, .colour = arm, .points = mean, .low = mean};
  for (size_t p = 0; p < mean.size(); ++p) {
    band.low[p].y = low(p);
    band.points[p].y = high(p);
  }
  chart.series.push_back(std::move(band));
}

/// `of`: the loss that is drawn, with the arms that have it.
Chart loss_chart(const StudyReport& report, const Scale& scale, const std::string& of) {
  const auto losses = shown_losses(report, of);
  const auto title = curve_title(report, of);
  Chart chart{.title = concat(title, " by ", scale.label),
              .x_label = scale.label,
              .y_label = title + curve_unit(report),
              .x = nice_axis(scale.range.low, scale.range.high, 5, false),
              .y = nice_axis(losses.low, losses.high, 5, true)};
  std::vector<ChartSeries> lines;
  for (const auto& run : report.runs)
    if (loss_of(run.curve) == of)
      lines.push_back({.title = concat(run.result.arm, ", seed ", run.result.seed),
                       .mark = ChartMark::faint,
                       .colour = index_of(report, run.result.arm),
                       .points = points_of(run.curve, scale, run_points)});
  for (size_t i = 0; i < report.arms.size(); ++i) {
    const auto& curve = report.arms[i].curve;
    if (loss_of(curve.mean) != of) continue;
    const auto mean = points_of(curve.mean, scale, mean_points);
    const auto sd = thinned(curve.sd, mean_points);
    if (report.arms[i].runs.size() > 1)
      add_band(
          chart, i, mean, [&](size_t p) { return mean[p].y - sd[p]; }, [&](size_t p) { return mean[p].y + sd[p]; });
    lines.push_back({.title = "mean of " + report.arms[i].name, .colour = i, .points = mean});
  }
  if (const double floor = floor_of_curves(report); floor > 0)
    lines.push_back({.title = traits_of(report.by).floor,
                     .mark = ChartMark::dashes,
                     .points = {{chart.x->low, floor}, {chart.x->high, floor}}});
  std::ranges::move(lines, std::back_inserter(chart.series));
  return chart;
}

/// Differences to the baseline; what the first tenth of training shows is cut off as in the chart of losses.
Chart difference_chart(const StudyReport& report, const Scale& scale) {
  const double margin = report.rules.margin;
  Range range;
  range.add(0);
  if (margin > 0) range.add({-margin, margin});
  for (const auto& arm : report.arms) {
    const auto& curve = arm.difference_curve;
    for (size_t p = 0; p < curve.mean.size(); ++p)
      if (10 * curve.mean[p].step >= curve.mean.back().step) range.add(curve.mean[p].loss);
    if (!curve.t_interval.empty()) range.add(curve.t_interval.back());
  }
  const auto x = nice_axis(scale.range.low, scale.range.high, 5, false);
  const auto level = [&](double y) { return std::vector<PlotPoint>{{x.low, y}, {x.high, y}}; };
  Chart chart{.title = concat("difference to ", report.baseline, " by ", scale.label),
              .x_label = scale.label,
              .y_label = concat("paired difference to ", report.baseline, in_brackets(report.unit)),
              .x = x,
              .y = nice_axis(range.low, range.high, 5, true),
              .is_low = true};
  if (margin > 0) chart.series.push_back({.mark = ChartMark::margin, .points = level(margin), .low = level(-margin)});
  std::vector<ChartSeries> lines{{.mark = ChartMark::zero, .points = level(0)}};
  for (size_t i = 1; i < report.arms.size(); ++i) {
    const auto& curve = report.arms[i].difference_curve;
    const auto mean = points_of(curve.mean, scale, mean_points);
    const auto intervals = thinned(curve.t_interval, mean_points);
    if (!intervals.empty())
      add_band(chart, i, mean, [&](size_t p) { return intervals[p].low; }, [&](size_t p) { return intervals[p].high; });
    lines.push_back({.title = report.arms[i].name, .colour = i, .points = mean});
  }
  std::ranges::move(lines, std::back_inserter(chart.series));
  return chart;
}

std::string legend_of(const StudyReport& report) {
  std::vector<std::pair<std::string, std::string>> names;
  for (size_t i = 0; i < report.arms.size(); ++i) names.emplace_back(colour_classes(i), report.arms[i].name);
  if (floor_of_curves(report) > 0) names.emplace_back(colour_classes(0), traits_of(report.by).floor + " (dashes)");
  return legend_html(names);
}

}  // namespace

std::string curve_chart(const StudyReport& report) {
  std::string picks, charts;
  for (const auto& currency : currencies) {
    const auto scale = scale_of(report, currency);
    if (!(scale.range.high > 0)) continue;
    picks += concat("<input class=\"pick\" type=\"radio\" name=\"by\" id=\"by-", currency.id, "\"",
                    picks.empty() ? " checked" : "", "><label for=\"by-", currency.id, "\">by ", currency.name,
                    "</label>\n");
    charts += concat("<div class=\"by by-", currency.id, "\">\n", legend_of(report));
    for (const auto& of : drawn_losses(report)) charts += chart_html(loss_chart(report, scale, of));
    if (report.arms.size() > 1 && traits_of(report.by).has_curve_in_unit)
      charts += chart_html(difference_chart(report, scale));
    charts += "</div>\n";
  }
  return charts.empty()
             ? ""
             : with_caption(picks + charts,
                            concat("Thick: means over finished runs, with a band of one standard deviation in the "
                                   "upper chart and of the ",
                                   interval_head(report),
                                   " of each point alone in the lower. Thin: single runs. Steep losses of the "
                                   "first tenth may leave the charts."));
}

std::string interval_chart(const StudyReport& report) {
  if (report.arms.size() < 2) return "";
  const bool higher = report.rules.higher_is_better;
  RowChart chart{.title = "difference to " + report.baseline,
                 .margin = report.rules.margin,
                 .has_zero = true,
                 .sides = {higher ? "← worse" : "← better",
                           concat("difference to ", in_one_line(report.baseline), in_brackets(report.unit)),
                           higher ? "better →" : "worse →"}};
  Range range;
  range.add(0);
  if (chart.margin > 0) range.add({-1.25 * chart.margin, 1.25 * chart.margin});
  for (size_t i = 1; i < report.arms.size(); ++i) {
    const auto& arm = report.arms[i];
    const auto& d = arm.difference;
    ChartRow row{.name = arm.name, .said = arm.verdict, .colour = i};
    const auto add = [&](const char* style, const std::optional<Interval>& interval) {
      if (!interval) return;
      range.add(*interval);
      row.marks.push_back({style, interval->low, interval->high});
    };
    add("interval", d.interval);
    if (d.seeds > 0) {
      range.add(d.mean);
      row.marks.push_back({"dot", d.mean, d.mean, 4.5, concat(arm.name, ": ", significant(d.mean, 4))});
    }
    chart.rows.push_back(std::move(row));
  }
  chart.axis = nice_axis(range.low, range.high, 5, true);
  return with_caption(row_chart_html(chart),
                      concat("Points: mean paired differences. Thick: ", interval_head(report), at_once_words(report),
                             ".", chart.margin > 0 ? " Shaded: differences below the margin." : ""));
}

std::string value_chart(const StudyReport& report) {
  Range range;
  RowChart chart{.title = "values of the runs"};
  for (size_t i = 0; i < report.arms.size(); ++i) {
    const auto& arm = report.arms[i];
    ChartRow row{.name = arm.name, .said = mean_text(report, arm), .colour = i};
    for (const auto& run : report.runs) {
      if (run.result.arm != arm.name || run.state != RunState::done) continue;
      const double value = run.result.value;
      range.add(value);
      row.marks.push_back({run.outlying ? "run outlying" : "run", value, value, run.outlying ? 5.5 : 4.5,
                           concat("seed ", run.result.seed, ": ", significant(value, 6))});
    }
    if (!arm.runs.empty()) row.marks.push_back({"mean", arm.summary.mean, arm.summary.mean});
    chart.rows.push_back(std::move(row));
  }
  if (range.low > range.high) return "";
  for (const auto& floor : floors_of(report)) {
    range.add(floor.value);
    chart.rows.push_back({.name = floor.name,
                          .said = fixed(floor.value, decimals_of(report)),
                          .marks = {{"mean", floor.value, floor.value}}});
  }
  chart.axis = nice_axis(range.low, range.high, 5, true);
  return with_caption(row_chart_html(chart), concat("Dots: finished runs. Bars: means. Rings: outliers. ",
                                                    capitalised(metric_title(report)), in_brackets(report.unit), "."));
}

}  // namespace cloze
