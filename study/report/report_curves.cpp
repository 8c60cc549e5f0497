#include "study/report/report_rows.h"

#include <algorithm>
#include <cmath>

namespace cloze {

Curves curves_of(const StudyReport& report, const std::string& arm) {
  Curves curves;
  for (const auto& run : report.runs)
    if (run.result.arm == arm && run.state == RunState::done && !run.curve.empty()) curves[run.result.seed] = run.curve;
  return curves;
}

ArmCurve mean_curve(const Curves& curves) {
  std::map<int64_t, std::vector<CurvePoint>> by_point;
  for (const auto& [seed, points] : curves)
    for (const auto& point : points) by_point[point.point].push_back(point);
  ArmCurve curve;
  for (const auto& [index, points] : by_point) {
    if (points.size() < curves.size()) continue;
    const auto n = static_cast<double>(points.size());
    std::vector<double> losses;
    double steps = 0, tokens = 0;
    CurvePoint mean{.point = index, .of = points.front().of};
    for (const auto& point : points) {
      losses.push_back(point.loss);
      steps += static_cast<double>(point.step) / n;
      tokens += static_cast<double>(point.tokens) / n;
      mean.seconds += point.seconds / n;
      mean.flops += point.flops / n;
    }
    const auto summary = summarize(losses);
    mean.step = std::llround(steps);
    mean.tokens = std::llround(tokens);
    mean.loss = summary.mean;
    curve.mean.push_back(mean);
    curve.sd.push_back(summary.sd);
  }
  return curve;
}

DifferenceCurve difference_curve(const ArmReport& arm, const Curves& of_arm, const Curves& of_baseline,
                                 const ComparisonRules& rules) {
  const auto loss_at = [](const std::vector<CurvePoint>& curve, int64_t index) -> const CurvePoint* {
    const auto at = std::lower_bound(curve.begin(), curve.end(), index,
                                     [](const CurvePoint& point, int64_t wanted) { return point.point < wanted; });
    return at != curve.end() && at->point == index ? &*at : nullptr;
  };
  DifferenceCurve curve;
  for (auto point : arm.curve.mean) {
    std::vector<double> losses, base;
    for (const auto& [seed, points] : of_arm) {
      const auto other = of_baseline.find(seed);
      if (other == of_baseline.end()) continue;
      const auto* a = loss_at(points, point.point);
      const auto* b = loss_at(other->second, point.point);
      if (!a || !b) continue;
      losses.push_back(a->loss);
      base.push_back(b->loss);
    }
    if (losses.empty()) continue;
    const auto test = paired_t_test(losses, base, rules);
    point.loss = test.mean;
    curve.mean.push_back(point);
    if (test.t_interval) curve.t_interval.push_back(*test.t_interval);
  }
  if (curve.t_interval.size() != curve.mean.size()) curve.t_interval.clear();
  return curve;
}

}  // namespace cloze
