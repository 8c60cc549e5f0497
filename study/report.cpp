#include "study/report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/log.h"
#include "study/runner.h"
#include "study/stage_report.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string run_name(const PlannedRun& run) { return run.arm + "/" + std::to_string(run.seed); }

/// Refuses results that were not measured alike.
void check_comparable(const std::vector<ArmReport>& arms) {
  const RunResult* first = nullptr;
  for (const auto& arm : arms)
    for (const auto& run : arm.runs) {
      if (!first) first = &run;
      require<DataError>(run.text == first->text, run.folder, " and ", first->folder,
                         ": were scored on different text or by different tokenizers, whose losses cannot be compared; "
                         "train all arms on one folder of tokens");
    }
}

/// Values of the seeds that two arms share, in the order of the first.
struct Pairs {
  std::vector<double> arm, baseline;
  std::vector<ExampleLosses> arm_examples, baseline_examples;
};
Pairs paired(const ArmReport& arm, const ArmReport& baseline) {
  Pairs pairs;
  for (const auto& run : arm.runs) {
    const auto other = std::find_if(baseline.runs.begin(), baseline.runs.end(),
                                    [&](const RunResult& one) { return one.seed == run.seed; });
    if (other == baseline.runs.end()) continue;
    pairs.arm.push_back(run.value);
    pairs.baseline.push_back(other->value);
    pairs.arm_examples.push_back(run.examples);
    pairs.baseline_examples.push_back(other->examples);
  }
  return pairs;
}

bool same_examples(const Pairs& pairs) {
  const auto size = pairs.baseline_examples.front().sum.size();
  const auto fits = [&](const ExampleLosses& run) { return run.sum.size() == size; };
  return std::all_of(pairs.arm_examples.begin(), pairs.arm_examples.end(), fits) &&
         std::all_of(pairs.baseline_examples.begin(), pairs.baseline_examples.end(), fits);
}

Difference compare(const ArmReport& arm, const ArmReport& baseline, const ComparisonRules& rules) {
  const auto pairs = paired(arm, baseline);
  if (pairs.arm.empty()) return {};
  auto difference = compare_seeds(pairs.arm, pairs.baseline, rules);
  const bool same_text = arm.runs.front().text == baseline.runs.front().text;
  if (difference.seeds > 1 && same_text && same_examples(pairs))
    difference.bootstrap_interval = expanded_percentiles(
        multibootstrap(pairs.arm_examples, pairs.baseline_examples, rules), difference.seeds, rules.confidence);
  return difference;
}

ArmCurve curve_of(const Plan& plan, const std::string& arm) {
  std::map<int64_t, std::vector<CurvePoint>> by_step;
  size_t runs = 0;
  for (const auto& run : plan.runs) {
    if (run.arm != arm) continue;
    const auto points = read_curve(plan, run);
    runs += !points.empty();
    for (const auto& point : points) by_step[point.step].push_back(point);
  }
  ArmCurve curve;
  for (const auto& [step, points] : by_step) {
    if (points.size() < runs) continue;
    std::vector<double> losses;
    CurvePoint mean{.step = step};
    for (const auto& point : points) {
      losses.push_back(point.loss);
      mean.tokens += point.tokens / static_cast<int64_t>(points.size());
      mean.seconds += point.seconds / static_cast<double>(points.size());
      mean.flops += point.flops / static_cast<double>(points.size());
    }
    const auto summary = summarize(losses);
    mean.loss = summary.mean;
    curve.mean.push_back(mean);
    curve.sd.push_back(summary.sd);
  }
  return curve;
}

/// Runs whose value is far from those of their arm: beyond 3.5 by the modified z score of Iglewicz and Hoaglin 1993.
void note_outliers(const ArmReport& arm, std::vector<std::string>& notes) {
  if (arm.runs.size() < 4) return;
  std::vector<double> values;
  for (const auto& run : arm.runs) values.push_back(run.value);
  std::sort(values.begin(), values.end());
  const double median = quantile(values, 0.5);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - median));
  std::sort(distances.begin(), distances.end());
  const double spread = quantile(distances, 0.5);
  for (const auto& run : arm.runs)
    if (spread > 0 && 0.6745 * std::abs(run.value - median) / spread > 3.5)
      notes.push_back(words("run ", arm.name, "/", run.seed, " is an outlier (", significant(run.value, 5),
                            ", median of the arm ", significant(median, 5), "); it counts like the others"));
}

/// Maximal sets of arms that no test tells apart from one another, by the corrected p of all pairs.
std::vector<std::vector<std::string>> tied_sets(const std::vector<ArmReport>& arms, const ComparisonRules& rules) {
  std::vector<const ArmReport*> ranked;
  for (const auto& arm : arms)
    if (arm.runs.size() > 1) ranked.push_back(&arm);
  std::sort(ranked.begin(), ranked.end(),
            [](const ArmReport* a, const ArmReport* b) { return a->summary.mean < b->summary.mean; });
  std::vector<std::pair<size_t, size_t>> pairs;
  std::vector<double> p;
  for (size_t a = 0; a < ranked.size(); ++a)
    for (size_t b = a + 1; b < ranked.size(); ++b) {
      const auto both = paired(*ranked[a], *ranked[b]);
      const auto test = compare_seeds(both.arm, both.baseline, rules);
      pairs.emplace_back(a, b);
      p.push_back(test.p.value_or(1));
    }
  const auto corrected = holm(p);
  std::set<std::pair<size_t, size_t>> distinct;
  for (size_t i = 0; i < pairs.size(); ++i)
    if (corrected[i] < 1 - rules.confidence) distinct.insert(pairs[i]);
  // Runs of neighbours in rank of which no two are distinct.
  std::vector<std::vector<std::string>> sets;
  size_t covered = 0;
  for (size_t first = 0; first < ranked.size(); ++first) {
    size_t end = first + 1;
    const auto all_tied = [&](size_t next) {
      for (size_t i = first; i < next; ++i)
        if (distinct.count({i, next})) return false;
      return true;
    };
    while (end < ranked.size() && all_tied(end)) ++end;
    if (end <= covered || end - first < 2) continue;
    covered = end;
    auto& set = sets.emplace_back();
    for (size_t i = first; i < end; ++i) set.push_back(ranked[i]->name);
  }
  return sets;
}

}  // namespace

StudyReport make_report(const Plan& plan) {
  if (!plan.study.space.items.empty()) return search_report(plan);
  const auto& metric = plan.study.metric;
  StudyReport report{.name = plan.study.study,
                     .unit = "nats",
                     .metric = metric.objective,
                     .baseline = plan.arms.front().name,
                     .declaration = declaration_of(plan)};
  report.rules = {.margin = metric.better_by,
                  .confidence = metric.confidence,
                  .power = metric.power,
                  .resamples = metric.resamples,
                  .seed = static_cast<uint64_t>(metric.seed)};
  for (const auto& arm : plan.arms) {
    auto& one = report.arms.emplace_back(ArmReport{.name = arm.name});
    one.is_baseline = &arm == &plan.arms.front();
    for (const auto& [key, value] : arm.keys) one.differs.push_back(key + ": " + one_line(value));
  }
  for (const auto& run : plan.runs) {
    auto& arm = *std::find_if(report.arms.begin(), report.arms.end(), [&](const auto& a) { return a.name == run.arm; });
    const auto status = status_of(plan, run);
    std::string command;
    for (const auto& word : run_command(plan, run, "cloze")) command += (command.empty() ? "" : " ") + word;
    report.commands.push_back(command);
    if (status.state == RunState::done)
      arm.runs.push_back(read_result(plan, run));
    else
      report.notes.push_back(words("run ", run_name(run), " is ", status.state,
                                   status.message.empty() ? "" : ": " + status.message, "; it is not in the table"));
  }
  check_comparable(report.arms);
  std::vector<Difference> differences;
  for (auto& arm : report.arms) {
    std::vector<double> values;
    for (const auto& run : arm.runs) values.push_back(run.value);
    arm.summary = summarize(values);
    arm.curve = curve_of(plan, arm.name);
    note_outliers(arm, report.notes);
    if (!arm.is_baseline) differences.push_back(compare(arm, report.arms.front(), report.rules));
  }
  judge(differences, report.rules);
  for (size_t i = 0; i < differences.size(); ++i) {
    auto& arm = report.arms[i + 1];
    arm.difference = differences[i];
    arm.verdict = arm.runs.empty() || report.arms.front().runs.empty()
                      ? "no finished pair of runs"
                      : verdict_words(arm.difference, report.rules, report.unit);
  }
  report.tied = tied_sets(report.arms, report.rules);
  add_stages(report, plan);
  return report;
}

}  // namespace cloze
