// The numbers of a report: what follows from the results of its runs.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>

#include "core/log.h"
#include "core/text.h"
#include "study/measures/pairs.h"
#include "study/report/report_rows.h"

namespace cloze {

namespace {

/// The curves of the finished runs of an arm, by seed.
using Curves = std::map<int64_t, std::vector<CurvePoint>>;

Curves curves_of(const StudyReport& report, const std::string& arm) {
  Curves curves;
  for (const auto& run : report.runs)
    if (run.result.arm == arm && run.state == RunState::done && !run.curve.empty()) curves[run.result.seed] = run.curve;
  return curves;
}

/// Mean and spread at the evaluations that all runs have.
ArmCurve mean_curve(const Curves& curves) {
  std::map<int64_t, std::vector<CurvePoint>> by_point;
  for (const auto& [seed, points] : curves)
    for (const auto& point : points) by_point[point.point].push_back(point);
  ArmCurve curve;
  for (const auto& [index, points] : by_point) {
    if (points.size() < curves.size()) continue;
    std::vector<double> losses;
    auto& mean = curve.mean.emplace_back();
    mean.point = index;
    mean.of = points.front().of;
    for (const auto& point : points) {
      losses.push_back(point.loss);
      mean += point / static_cast<double>(points.size());
    }
    const auto summary = summarize(losses);
    mean.step = std::round(mean.step);
    mean.tokens = std::round(mean.tokens);
    mean.loss = summary.mean;
    curve.sd.push_back(summary.sd);
  }
  return curve;
}

/// Differences of pairs of runs at the evaluations that both arms have.
DifferenceCurve difference_curve(const ArmReport& arm, const Curves& of_arm, const Curves& of_baseline,
                                 const ComparisonRules& rules) {
  const auto loss_at = [](const std::vector<CurvePoint>& curve, int64_t index) -> const CurvePoint* {
    const auto at = std::ranges::lower_bound(curve, index, {}, &CurvePoint::point);
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

/// Fills in the finished and failed runs of an arm, their mean, and the outlier among them.
void collect_runs(ArmReport& arm, StudyReport& report) {
  for (const auto& run : report.runs) {
    if (run.result.arm != arm.name) continue;
    if (run.state == RunState::done) arm.runs.push_back(run.result);
    if (run.state == RunState::failed && is_own_failure(run.message)) arm.failed.push_back(run.result.seed);
  }
  std::vector<double> values;
  double floors = 0;
  for (const auto& run : arm.runs) {
    values.push_back(run.value);
    floors += run.floor;
  }
  if (!values.empty()) arm.floor = floors / static_cast<double>(values.size());
  arm.summary = summarize(values);
  arm.outlier = outlier(values);
  for (auto& run : report.runs)
    if (arm.outlier) run.outlying = run.outlying || run.result.folder == arm.runs[arm.outlier->index].folder;
}

/// Marks the arms of another budget than the baseline.
void mark_other_budgets(StudyReport& report) {
  const auto first_budget = [&](const ArmReport& arm) {
    const auto is_of_arm = [&](const ReportedRun& run) { return run.result.arm == arm.name; };
    const auto run = std::ranges::find_if(report.runs, is_of_arm);
    return run == report.runs.end() ? std::string() : run->budget;
  };
  for (auto& arm : report.arms)
    if (first_budget(arm) != first_budget(report.arms.front())) arm.other_budget = first_budget(arm);
}

void draw_curves(StudyReport& report) {
  const auto of_baseline = curves_of(report, report.arms.front().name);
  for (auto& arm : report.arms) {
    const auto curves = curves_of(report, arm.name);
    arm.curve = mean_curve(curves);
    if (!arm.is_baseline && arm.other_budget.empty())
      arm.difference_curve = difference_curve(arm, curves, of_baseline, report.rules);
  }
}

ArmValues values_of(const ArmReport& arm) {
  ArmValues values;
  for (const auto& run : arm.runs) values.push_back({run.seed, &run});
  return values;
}

/// The finite values of a secondary metric.
ArmValues values_of(const ArmReport& arm, size_t metric) {
  ArmValues values;
  for (const auto& run : arm.runs)
    if (const auto& value = run.secondary[metric]; std::isfinite(value.value)) values.push_back({run.seed, &value});
  return values;
}

Pairs paired(const ArmReport& arm, const ArmReport& baseline) {
  return arm.other_budget == baseline.other_budget ? Pairs(values_of(arm), values_of(baseline)) : Pairs();
}

/// Whether the verdict of an arm tells it from the baseline.
bool is_apart(const ArmReport& arm) {
  const auto verdict = arm.difference.verdict;
  return verdict == Verdict::better || verdict == Verdict::worse || verdict == Verdict::smaller;
}

/// Whether one of two arms loses a larger share of its runs, so that what is left of it is the better part.
bool fail_unequally(const ArmReport& a, const ArmReport& b) {
  const auto all_of = [](const ArmReport& arm) { return arm.runs.size() + arm.failed.size(); };
  return a.failed.size() * all_of(b) != b.failed.size() * all_of(a);
}

/// Whether the verdict on an arm does not stand. Runs that fail are those that do worst: an arm that loses more of them
/// looks better than it is, and only a verdict against it stands.
bool is_held_back(const ArmReport& arm, const ArmReport& baseline) {
  const auto verdict = arm.difference.verdict;
  if ((!is_apart(arm) && verdict != Verdict::tied) || !fail_unequally(arm, baseline)) return false;
  const bool arm_loses_more = arm.failed.size() * baseline.runs.size() > baseline.failed.size() * arm.runs.size();
  return verdict != (arm_loses_more ? Verdict::worse : Verdict::better);
}

/// Arms against the first, whose intervals hold all at once.
void judge(StudyReport& report) {
  const auto& baseline = report.arms.front();
  const auto has_interval = [&](const ArmReport& arm) { return !arm.is_baseline && paired(arm, baseline).count() > 1; };
  report.rules.arms = std::max<int64_t>(1, std::ranges::count_if(report.arms, has_interval));
  std::vector<Difference*> differences;
  for (auto& arm : report.arms) {
    if (arm.is_baseline) continue;
    arm.difference = paired(arm, baseline).compare(report.rules);
    differences.push_back(&arm.difference);
  }
  correct(differences);
  for (auto& arm : report.arms)
    if (is_held_back(arm, baseline)) arm.difference.verdict = Verdict::held_back;
}

/// The arms with several runs, the best first.
std::vector<const ArmReport*> ranked_arms(const StudyReport& report) {
  std::vector<const ArmReport*> ranked;
  for (const auto& arm : report.arms)
    if (arm.runs.size() > 1 && arm.other_budget.empty()) ranked.push_back(&arm);
  std::ranges::sort(ranked, [&](const ArmReport* a, const ArmReport* b) {
    return report.rules.higher_is_better ? a->summary.mean > b->summary.mean : a->summary.mean < b->summary.mean;
  });
  return ranked;
}

using PlacePairs = std::set<std::pair<size_t, size_t>>;

/// The places of arms that are told apart: from the baseline by the verdict, from one another by the p of all such
/// pairs, corrected by Holm. Arms without common seeds, and those that fail unequally often, are not compared.
PlacePairs pairs_apart(const std::vector<const ArmReport*>& ranked, StudyReport& report) {
  PlacePairs apart;
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t a = 0; a < ranked.size(); ++a)
    for (size_t b = a + 1; b < ranked.size(); ++b) {
      const auto both = paired(*ranked[a], *ranked[b]);
      const auto* other = ranked[a]->is_baseline ? ranked[b] : ranked[b]->is_baseline ? ranked[a] : nullptr;
      const bool is_incomparable = both.count() < 2 || fail_unequally(*ranked[a], *ranked[b]);
      if (is_incomparable || (other && is_apart(*other))) apart.insert({a, b});
      if (is_incomparable || other) continue;
      places.emplace_back(a, b);
      report.pairs.push_back({ranked[a]->name, ranked[b]->name, both.test(report.rules)});
    }
  std::vector<Difference*> differences;
  for (auto& pair : report.pairs) differences.push_back(&pair.difference);
  correct(differences);
  for (size_t i = 0; i < places.size(); ++i)
    if (*report.pairs[i].difference.p_holm < 1 - report.rules.confidence) apart.insert(places[i]);
  return apart;
}

/// Fills in the maximal sets of arms with runs of common seeds of which no two are told apart, by rank.
void set_tied(StudyReport& report) {
  const auto ranked = ranked_arms(report);
  const auto apart = pairs_apart(ranked, report);
  size_t covered = 0;
  for (size_t first = 0; first < ranked.size(); ++first) {
    size_t end = first + 1;
    const auto all_tied = [&](size_t next) {
      for (size_t i = first; i < next; ++i)
        if (apart.contains({i, next})) return false;
      return true;
    };
    while (end < ranked.size() && all_tied(end)) ++end;
    if (end <= covered || end - first < 2) continue;
    covered = end;
    auto& set = report.tied.emplace_back();
    for (size_t i = first; i < end; ++i) set.push_back(ranked[i]->name);
  }
}

/// The end of the interval of an arm's mean on the side of the floor, over seeds and items; of a single run its value.
double bound_of(const ArmReport& arm, const ComparisonRules& rules) {
  if (arm.runs.size() < 2) return arm.summary.mean;
  MetricValue nothing = arm.runs.front();  // whose value is 0, item by item
  nothing.value = 0;
  std::ranges::fill(nothing.examples.sum, 0);
  std::ranges::fill(nothing.examples.draws, 0);
  Pairs pairs;
  for (const auto& run : arm.runs) {
    pairs.arm.push_back(&run);
    pairs.baseline.push_back(&nothing);
  }
  const auto interval = deciding_interval(pairs.test(rules), {.confidence = rules.confidence});
  return rules.higher_is_better ? interval.low : interval.high;
}

/// Marks the arms that are no better than their floor, the majority of a test part by more than their interval. Of a
/// study of which no arm is better the verdicts are taken back.
void mark_floors(StudyReport& report) {
  const bool is_of_task = std::holds_alternative<TaskMetric>(report.by);
  bool is_one_better = false;
  for (auto& arm : report.arms) {
    if (arm.floor > 0) report.floor = report.floor > 0 ? std::min(report.floor, arm.floor) : arm.floor;
    if (arm.runs.empty()) continue;
    const double value = is_of_task && arm.floor != 0 ? bound_of(arm, report.rules) : arm.summary.mean;
    arm.is_at_floor = arm.floor != 0 && !(report.rules.higher_is_better ? value > arm.floor : value < arm.floor);
    is_one_better = is_one_better || !arm.is_at_floor;
  }
  report.is_at_floor = !is_one_better && std::ranges::any_of(report.arms, &ArmReport::is_at_floor);
  if (!report.is_at_floor) return;
  report.tied.clear();
  for (auto& arm : report.arms)
    if (!arm.is_baseline) arm.difference.verdict = Verdict::undecided;
}

/// What the secondary metrics say of each arm, with p values that are corrected over all of them.
void compare_secondary(StudyReport& report) {
  for (size_t i = 0; i < report.secondary.size(); ++i) {
    const ComparisonRules rules{.higher_is_better = traits_of(report.secondary[i]).higher_is_better,
                                .confidence = report.rules.confidence,
                                .power = report.rules.power};
    const auto& first = report.arms.front();
    for (auto& arm : report.arms) {
      const auto values = values_of(arm, i);
      auto& score = arm.secondary.emplace_back(SecondaryScore{.summary = summarize(values)});
      for (const auto& [seed, value] : values) score.floor += value->floor / static_cast<double>(values.size());
      if (!arm.is_baseline && arm.other_budget == first.other_budget)
        score.difference = Pairs(values, values_of(first, i)).compare(rules);
    }
  }
  std::vector<Difference*> differences;
  for (auto& arm : report.arms)
    for (auto& score : arm.secondary) differences.push_back(&score.difference);
  correct(differences);
}

}  // namespace

void compare_arms(StudyReport& report) {
  mark_other_budgets(report);
  report.arms.front().is_baseline = true;
  for (auto& arm : report.arms) collect_runs(arm, report);
  draw_curves(report);
  judge(report);
  set_tied(report);
  mark_floors(report);
  compare_secondary(report);
}

namespace {

/// The parts of a held-out evaluation in words, without the list of its objectives: what one loss depends on.
std::vector<std::string> parts_of(const std::string& measured) {
  auto parts = separated(measured, ", ");
  if (parts.size() > 1) parts.erase(parts.begin());
  return parts;
}

/// Bytes of text that a result in bits per byte covers.
double bytes_of(const RunResult& run) {
  return std::accumulate(run.examples.count.begin(), run.examples.count.end(), 0.0) / std::numbers::ln2;
}

/// Why losses were taken from texts that cannot be compared; empty where they were not.
std::string difference_of_texts(const ReportedRun& a, const ReportedRun& b, const LossMetric& loss) {
  const auto remedy =
      "; train all arms on one folder of tokens, or compare a generative loss in bits per byte (metric.unit of a "
      "study, --unit of `cloze report`)";
  if (loss.unit == LossUnit::bits_per_byte) {
    const double covered = bytes_of(a.result), other = bytes_of(b.result);
    if (std::abs(covered - other) <= 0.02 * covered) return "";
    return concat("were scored on different text, of ", bytes(covered), " and ", bytes(other),
                  "; prepare both folders of tokens from one text with the same held-out share, and score all of it "
                  "(evaluation.sequences)");
  }
  if (!a.provenance.tokenizer.empty() && !b.provenance.tokenizer.empty() &&
      a.provenance.tokenizer != b.provenance.tokenizer)
    return concat("have different tokenizers (", a.provenance.tokenizer, " and ", b.provenance.tokenizer,
                  "), so that their losses cannot be compared", remedy);
  if (a.result.text != b.result.text)
    return concat("were scored on different text or by different tokenizers (tokens ", a.result.text, " and ",
                  b.result.text, "), so that their losses cannot be compared", remedy);
  return "";
}

/// Why two runs cannot be compared; empty where they can.
std::string difference_of(const ReportedRun& a, const ReportedRun& b, const StudyMetric& by) {
  const auto* loss = std::get_if<LossMetric>(&by);
  if (!loss)
    return a.result.text == b.result.text
               ? ""
               : concat("answered other items of ", traits_of(by).name, "; give all runs the same ones");
  if (const auto texts = difference_of_texts(a, b, *loss); !texts.empty()) return texts;
  const auto said = parts_of(a.result.measured), other = parts_of(b.result.measured);
  for (size_t i = 0; i < std::max(said.size(), other.size()); ++i)
    if (i >= said.size() || i >= other.size() || said[i] != other[i])
      return concat("were scored differently, so that their losses cannot be compared: by ", a.result.measured,
                    ", and by ", b.result.measured, "; give both the same `evaluation`");
  return "";
}

/// A run with the value of a secondary metric in place of the first.
ReportedRun by_secondary(const ReportedRun& run, size_t metric) {
  ReportedRun measured{.provenance = run.provenance};
  static_cast<MetricValue&>(measured.result) = run.result.secondary[metric];
  return measured;
}

/// Whether nobody has measured a run by a secondary metric.
bool lacks_secondary(const ReportedRun& run, size_t metric) {
  const auto& value = run.result.secondary[metric];
  return std::isnan(value.value) && value.measured.empty();
}

void refuse_difference(const ReportedRun& a, const ReportedRun& b, const std::string& difference) {
  require<DataError>(difference.empty(), a.result.folder, " and ", b.result.folder, ": ", difference);
}

}  // namespace

void check_comparable(const StudyReport& report) {
  std::vector<const ReportedRun*> done;
  for (const auto& run : report.runs)
    if (run.state == RunState::done) done.push_back(&run);
  for (const auto* run : done) refuse_difference(*done.front(), *run, difference_of(*done.front(), *run, report.by));
  for (size_t i = 0; i < report.secondary.size(); ++i) {
    const ReportedRun* first = nullptr;
    for (const auto* run : done) {
      if (lacks_secondary(*run, i)) continue;
      if (!first) first = run;
      refuse_difference(*first, *run,
                        difference_of(by_secondary(*first, i), by_secondary(*run, i), report.secondary[i]));
    }
  }
}

}  // namespace cloze
