#include "study/report.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/file.h"
#include "core/log.h"
#include "study/runner.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The parts of a held-out evaluation in words, without the list of its objectives: what a loss depends on.
std::vector<std::string> parts_of(const std::string& measured) {
  std::vector<std::string> parts{""};
  for (size_t i = 0; i < measured.size(); ++i)
    if (measured.compare(i, 2, ", ") == 0)
      parts.emplace_back(), ++i;
    else
      parts.back() += measured[i];
  if (parts.size() > 1) parts.erase(parts.begin());
  return parts;
}

/// Why two runs cannot be compared; empty where they can.
std::string difference_of(const ReportedRun& a, const ReportedRun& b) {
  const auto said = parts_of(a.result.text), other = parts_of(b.result.text);
  if (!a.tokenizer.empty() && !b.tokenizer.empty() && a.tokenizer != b.tokenizer)
    return words("have different tokenizers (", a.tokenizer, " and ", b.tokenizer,
                 "), so that their losses cannot be compared; train all on one folder of tokens");
  if (said.back() != other.back())
    return words("were scored on different held-out text or by different tokenizers (", said.back(), " and ",
                 other.back(), "), so that their losses cannot be compared; train all on one folder of tokens");
  for (size_t i = 0; i < std::min(said.size(), other.size()); ++i)
    if (said[i] != other[i])
      return words("were scored differently ('", said[i], "' and '", other[i],
                   "'), so that their losses cannot be compared; give both the same `evaluation`");
  if (a.budget != b.budget)
    return words("had different budgets (", a.budget, " and ", b.budget, "); compare runs of one budget");
  return "";
}

/// Refuses results that were not made and measured alike.
void check_comparable(const std::vector<ReportedRun>& runs) {
  const ReportedRun* first = nullptr;
  for (const auto& run : runs) {
    if (run.state != RunState::done) continue;
    if (!first) first = &run;
    const auto difference = difference_of(*first, run);
    require<DataError>(difference.empty(), first->result.folder, " and ", run.result.folder, ": ", difference);
  }
}

/// Values of the seeds that two arms share, in the order of the first.
struct Pairs {
  std::vector<double> arm, baseline;
  std::vector<ExampleLosses> arm_examples, baseline_examples;
};
Pairs paired(const ArmReport& arm, const ArmReport& baseline, bool with_examples) {
  Pairs pairs;
  for (const auto& run : arm.runs) {
    const auto other = std::find_if(baseline.runs.begin(), baseline.runs.end(),
                                    [&](const RunResult& one) { return one.seed == run.seed; });
    if (other == baseline.runs.end()) continue;
    pairs.arm.push_back(run.value);
    pairs.baseline.push_back(other->value);
    if (!with_examples) continue;
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
  const auto pairs = paired(arm, baseline, true);
  if (pairs.arm.empty()) return {};
  auto difference = compare_seeds(pairs.arm, pairs.baseline, rules);
  if (difference.seeds > 1 && same_examples(pairs))
    difference.bootstrap_interval = expanded_percentiles(
        multibootstrap(pairs.arm_examples, pairs.baseline_examples, rules), difference.seeds, rules.confidence);
  return difference;
}

/// The curves of the finished runs of an arm, by seed.
using Curves = std::map<int64_t, std::vector<CurvePoint>>;
Curves curves_of(const StudyReport& report, const std::string& arm) {
  Curves curves;
  for (const auto& run : report.runs)
    if (run.result.arm == arm && run.state == RunState::done && !run.curve.empty()) curves[run.result.seed] = run.curve;
  return curves;
}

ArmCurve mean_curve(const Curves& curves) {
  std::map<int64_t, std::vector<CurvePoint>> by_step;
  for (const auto& [seed, points] : curves)
    for (const auto& point : points) by_step[point.step].push_back(point);
  ArmCurve curve;
  for (const auto& [step, points] : by_step) {
    if (points.size() < curves.size()) continue;
    const auto n = static_cast<double>(points.size());
    std::vector<double> losses;
    double tokens = 0;
    CurvePoint mean{.step = step};
    for (const auto& point : points) {
      losses.push_back(point.loss);
      tokens += static_cast<double>(point.tokens) / n;
      mean.seconds += point.seconds / n;
      mean.flops += point.flops / n;
    }
    const auto summary = summarize(losses);
    mean.tokens = std::llround(tokens);
    mean.loss = summary.mean;
    curve.mean.push_back(mean);
    curve.sd.push_back(summary.sd);
  }
  return curve;
}

/// Differences of pairs of runs at the steps that both arms have.
DifferenceCurve difference_curve(const ArmReport& arm, const Curves& of_arm, const Curves& of_baseline,
                                 const ComparisonRules& rules) {
  const auto loss_at = [](const std::vector<CurvePoint>& curve, int64_t step) -> const CurvePoint* {
    const auto at = std::lower_bound(curve.begin(), curve.end(), step,
                                     [](const CurvePoint& point, int64_t wanted) { return point.step < wanted; });
    return at != curve.end() && at->step == step ? &*at : nullptr;
  };
  DifferenceCurve curve;
  for (auto point : arm.curve.mean) {
    std::vector<double> losses, base;
    for (const auto& [seed, points] : of_arm) {
      const auto other = of_baseline.find(seed);
      if (other == of_baseline.end()) continue;
      const auto* a = loss_at(points, point.step);
      const auto* b = loss_at(other->second, point.step);
      if (a && b) losses.push_back(a->loss), base.push_back(b->loss);
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

/// Marks runs whose value is far from those of their arm: beyond 3.5 by the modified z score of Iglewicz and Hoaglin
/// 1993.
void mark_outliers(const ArmReport& arm, StudyReport& report) {
  if (arm.runs.size() < 4) return;
  std::vector<double> values;
  for (const auto& run : arm.runs) values.push_back(run.value);
  std::sort(values.begin(), values.end());
  const double median = quantile(values, 0.5);
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - median));
  std::sort(distances.begin(), distances.end());
  const double spread = quantile(distances, 0.5);
  for (auto& run : report.runs) {
    const auto& result = run.result;
    if (result.arm != arm.name || run.state != RunState::done || spread == 0) continue;
    run.outlying = 0.6745 * std::abs(result.value - median) / spread > 3.5;
    if (run.outlying)
      report.notes.push_back(words("run ", arm.name, "/", result.seed, " is an outlier (", significant(result.value, 5),
                                   ", median of the arm ", significant(median, 5), "); it counts like the others"));
  }
}

/// What a report says of a run that is not done.
std::string note_on(const ReportedRun& run) {
  const auto state = [&] {
    switch (run.state) {
      case RunState::waiting:
        return "has not finished";
      case RunState::running:
        return "is still running";
      case RunState::failed:
        return "failed";
      case RunState::stale:
        return "was made from another config, text, tokenizer or version";
      case RunState::done:
        break;
    }
    return "is done";
  };
  return words("run ", run.result.arm, "/", run.result.seed, " ", state(), run.message.empty() ? "" : ": ", run.message,
               "; it is not in the table");
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
      const auto both = paired(*ranked[a], *ranked[b], false);
      const auto test = both.arm.empty() ? Difference{} : paired_t_test(both.arm, both.baseline, rules);
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

/// What an arm without a pair of runs is told.
std::string no_pairs(const ArmReport& arm, const ArmReport& baseline) {
  return arm.runs.empty() || baseline.runs.empty() ? "no finished pair of runs" : "no seed in common with the baseline";
}

}  // namespace

std::string budget_words(const BudgetConfig& budget) {
  std::string text;
  for (const auto& limit : entries(budget)) {
    const bool whole = limit.value.find_first_not_of("0123456789") == std::string::npos;
    if (!limit.leaf || limit.value == "0" || limit.value.empty()) continue;
    text +=
        (text.empty() ? "" : " or ") + (whole ? thousands(std::stoull(limit.value)) : limit.value) + " " + limit.key;
  }
  return text;
}

void read_provenance(const std::string& folder, ReportedRun& run) {
  const auto path = folder + "/provenance.json";
  if (!fs::exists(path)) return;
  const auto fields = json::parse(read_text(path, 1 << 20), nullptr, false);
  const auto text = [&](const char* pointer) {
    const json::json_pointer at(pointer);
    return fields.is_object() && fields.contains(at) && fields[at].is_string() ? fields[at].get<std::string>() : "";
  };
  run.tokenizer = text("/data/tokenizer");
  if (const auto version = text("/cloze"); !version.empty())
    run.made_by = words("cloze ", version, ", LibTorch ", text("/libtorch"), ", ", text("/machine/processor"));
}

std::string shell_quoted(const std::string& word) {
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_./=+,:@%-", c); };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void compare_arms(StudyReport& report) {
  check_comparable(report.runs);
  for (const auto& run : report.runs) {
    report.commands.push_back(run.command);
    if (run.state != RunState::done) report.notes.push_back(note_on(run));
  }
  Curves of_baseline;
  std::vector<Difference> differences;
  for (auto& arm : report.arms) {
    arm.is_baseline = &arm == &report.arms.front();
    std::vector<double> values;
    for (const auto& run : report.runs)
      if (run.result.arm == arm.name && run.state == RunState::done) {
        arm.runs.push_back(run.result);
        values.push_back(run.result.value);
      }
    arm.summary = summarize(values);
    const auto curves = curves_of(report, arm.name);
    arm.curve = mean_curve(curves);
    mark_outliers(arm, report);
    if (arm.is_baseline) {
      of_baseline = curves;
      continue;
    }
    arm.difference_curve = difference_curve(arm, curves, of_baseline, report.rules);
    differences.push_back(compare(arm, report.arms.front(), report.rules));
  }
  judge(differences, report.rules);
  for (size_t i = 0; i < differences.size(); ++i) {
    auto& arm = report.arms[i + 1];
    arm.difference = differences[i];
    arm.verdict = arm.difference.seeds == 0 ? no_pairs(arm, report.arms.front())
                                            : verdict_words(arm.difference, report.rules, report.unit);
  }
  report.tied = tied_sets(report.arms, report.rules);
}

StudyReport make_report(const Plan& plan) {
  const auto& metric = plan.study.metric;
  StudyReport report{.name = plan.study.study,
                     .unit = "nats",
                     .metric = metric.objective,
                     .baseline = plan.arms.front().name,
                     .declaration = declaration_of(plan),
                     .source = plan.file};
  report.rules = {.margin = metric.better_by,
                  .confidence = metric.confidence,
                  .power = metric.power,
                  .resamples = metric.resamples,
                  .seed = static_cast<uint64_t>(metric.seed)};
  for (const auto& arm : plan.arms) {
    auto& one = report.arms.emplace_back(ArmReport{.name = arm.name});
    for (const auto& [key, value] : arm.keys) one.differs.push_back(key + ": " + one_line(value));
  }
  for (const auto& planned : plan.runs) {
    const auto status = status_of(plan, planned);
    const auto folder = run_path(plan, planned);
    auto& run = report.runs.emplace_back(
        ReportedRun{.result = {.arm = planned.arm, .seed = planned.seed, .folder = folder},
                    .state = status.state,
                    .message = status.message,
                    .command = words("cloze pretrain ", shell_quoted(config_path(plan, planned)), " --run ",
                                     shell_quoted(folder + "-again"))});
    const auto& budget = plan.study.budget.limited() ? plan.study.budget : planned.config.train.budget;
    run.budget = budget_words(budget);
    if (status.state != RunState::done) continue;
    run.result = read_result(plan, planned);
    run.curve = read_curve(plan, planned);
    read_provenance(folder, run);
    if (std::isfinite(run.result.value)) continue;
    run.state = RunState::failed;
    run.message = "its held-out loss is not finite";
  }
  compare_arms(report);
  report.notes.push_back("no key was tuned: every arm ran with the learning rate of its config");
  return report;
}

}  // namespace cloze
