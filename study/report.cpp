#include "study/report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "run/history.h"
#include "study/report_rows.h"
#include "study/declaration.h"
#include "study/plan_table.h"
#include "study/process.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Runs of the seeds that two arms share, in the order of the first.
struct Pairs {
  std::vector<const RunResult*> arm{}, baseline{};
};
Pairs paired(const ArmReport& arm, const ArmReport& baseline) {
  Pairs pairs;
  if (arm.other_budget != baseline.other_budget) return pairs;
  for (const auto& run : arm.runs) {
    const auto other = std::find_if(baseline.runs.begin(), baseline.runs.end(),
                                    [&](const RunResult& one) { return one.seed == run.seed; });
    if (other == baseline.runs.end()) continue;
    pairs.arm.push_back(&run);
    pairs.baseline.push_back(&*other);
  }
  return pairs;
}

std::vector<double> values_of(const std::vector<const RunResult*>& runs) {
  std::vector<double> values;
  for (const auto* run : runs) values.push_back(run->value);
  return values;
}

std::vector<const ExampleLosses*> examples_of(const std::vector<const RunResult*>& runs) {
  std::vector<const ExampleLosses*> examples;
  for (const auto* run : runs) examples.push_back(&run->examples);
  return examples;
}

/// Whether all runs have losses of the same examples.
bool same_examples(const Pairs& pairs) {
  const auto& first = *pairs.baseline.front();
  const auto fits = [&](const RunResult* run) {
    return run->text == first.text && run->examples.sum.size() == first.examples.sum.size();
  };
  return std::all_of(pairs.arm.begin(), pairs.arm.end(), fits) &&
         std::all_of(pairs.baseline.begin(), pairs.baseline.end(), fits);
}

/// Arms that are paired with the same runs of the baseline, by their indices.
struct PairedAlike {
  std::vector<size_t> arms{};
  std::vector<Pairs> pairs{};
};

/// Differences of all arms but the first to the first. Resamples are drawn once for all arms with the same seeds.
std::vector<Difference> differences_of(const StudyReport& report) {
  std::vector<Difference> differences;
  std::map<std::vector<int64_t>, PairedAlike> by_seeds;
  for (size_t i = 1; i < report.arms.size(); ++i) {
    const auto pairs = paired(report.arms[i], report.arms.front());
    differences.push_back(pairs.arm.empty()
                              ? Difference{}
                              : compare_seeds(values_of(pairs.arm), values_of(pairs.baseline), report.rules));
    if (differences.back().seeds < 2 || !same_examples(pairs)) continue;
    std::vector<int64_t> seeds;
    for (const auto* run : pairs.baseline) seeds.push_back(run->seed);
    auto& alike = by_seeds[seeds];
    alike.arms.push_back(i - 1);
    alike.pairs.push_back(pairs);
  }
  for (const auto& [seeds, alike] : by_seeds) {
    std::vector<std::vector<const ExampleLosses*>> arms;
    for (const auto& pairs : alike.pairs) arms.push_back(examples_of(pairs.arm));
    auto draws = multibootstrap(arms, examples_of(alike.pairs.front().baseline), report.rules);
    for (size_t k = 0; k < draws.size(); ++k)
      differences[alike.arms[k]].bootstrap_interval =
          expanded_percentiles(std::move(draws[k]), static_cast<int64_t>(seeds.size()), report.rules.confidence);
  }
  return differences;
}

/// Marks the run that is the outlier of its arm.
void mark_outlier(const ArmReport& arm, StudyReport& report) {
  std::vector<double> values;
  for (const auto& run : arm.runs) values.push_back(run.value);
  const auto found = outlier(values);
  if (!found) return;
  for (auto& run : report.runs) run.outlying = run.outlying || run.result.folder == arm.runs[found->index].folder;
  report.notes.push_back(words("run ", arm.name, "/", arm.runs[found->index].seed, " is an outlier (",
                               significant(values[found->index], 5), ", the others of the arm have a mean of ",
                               significant(found->others.mean, 5), "; p ", significant(found->p, 2),
                               "); it counts like the others"));
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

/// Maximal sets of arms of the baseline's budget that no test tells apart from one another, by the corrected p of all
/// pairs.
std::vector<std::vector<std::string>> tied_sets(const std::vector<ArmReport>& arms, const ComparisonRules& rules) {
  std::vector<const ArmReport*> ranked;
  for (const auto& arm : arms)
    if (arm.runs.size() > 1 && arm.other_budget.empty()) ranked.push_back(&arm);
  std::sort(ranked.begin(), ranked.end(),
            [](const ArmReport* a, const ArmReport* b) { return a->summary.mean < b->summary.mean; });
  std::vector<std::pair<size_t, size_t>> pairs;
  std::vector<double> p;
  for (size_t a = 0; a < ranked.size(); ++a)
    for (size_t b = a + 1; b < ranked.size(); ++b) {
      const auto both = paired(*ranked[a], *ranked[b]);
      const auto test =
          both.arm.empty() ? Difference{} : paired_t_test(values_of(both.arm), values_of(both.baseline), rules);
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

/// The budget of a run and of its head.
std::string budget_of(const Plan& plan, const PlannedRun& run) {
  if (plan.study.budget.limited()) return budget_words(plan.study.budget);
  const auto network = budget_words(run.network_config().train.budget);
  return run.is_probe() ? words(network, " and ", budget_words(run.config.train.budget), " of the head") : network;
}

/// A planned run with its result, where it is done. Throws DataError for one that had ended and lost its result.
ReportedRun reported(const Plan& plan, const PlannedRun& planned, const RunStatus& status) {
  const auto folder = run_path(plan, planned);
  require<DataError>(status.lost_result.empty(), status.lost_result);
  ReportedRun run{.result = {.arm = planned.arm, .seed = planned.seed, .folder = folder},
                  .state = status.state,
                  .message = status.message,
                  .command = words("cloze pretrain ", shell_word(config_path(plan, planned)), " --run ",
                                   shell_word(folder + "-again"))};
  run.budget = budget_of(plan, planned);
  if (status.state != RunState::done) return run;
  run.curve = read_curve(plan, planned);
  run.result = read_result(plan, planned, run.curve);
  if (planned.is_probe()) read_provenance(planned.source, run);
  read_provenance(folder, run);
  if (std::isfinite(run.result.value)) return run;
  run.state = RunState::failed;
  run.message = "its held-out loss is not finite";
  return run;
}

/// Makes arms of the finished runs that were changed on their way, each change one, behind those of the plan.
void set_changed_apart(StudyReport& report) {
  std::map<std::pair<std::string, std::string>, std::string> names;  // of planned arm and change
  for (auto& run : report.runs) {
    if (run.changed.empty() || run.state != RunState::done) continue;
    auto& name = names[{run.result.arm, run.changed}];
    if (name.empty()) {
      const auto is_taken = [&](const ArmReport& arm) { return arm.name == name; };
      name = run.result.arm + changed_name(run.changed);
      if (std::ranges::any_of(report.arms, is_taken)) name = run.result.arm + ", " + run.changed;
      const auto planned = std::ranges::find(report.arms, run.result.arm, &ArmReport::name);
      auto differs = planned->differs;
      differs.push_back(run.changed);
      report.arms.push_back({.name = name, .differs = differs});
    }
    run.result.arm = name;
  }
}

/// Notes the arms of runs that were changed, and what made the runs where that is not one program and processor.
void note_makers(StudyReport& report) {
  std::map<std::string, std::string> changed, arms_by;  // of arms; by what made their runs
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& run : report.runs) {
    if (run.state != RunState::done) continue;
    if (!run.changed.empty()) changed[run.result.arm] = run.changed;
    if (run.made_by.empty() || !seen.insert({run.made_by, run.result.arm}).second) continue;
    auto& arms = arms_by[run.made_by];
    arms += (arms.empty() ? "" : ", ") + run.result.arm;
  }
  for (const auto& [arm, change] : changed)
    report.notes.push_back(words("arm ", arm, ": ", change.substr(change.find(" with ") + 1),
                                 "; it is held apart from runs that never changed"));
  if (arms_by.size() < 2) return;
  std::string makers;
  for (const auto& [made_by, arms] : arms_by) makers += words(makers.empty() ? "" : "; ", arms, ": ", made_by);
  report.notes.push_back("runs were made by different versions or processors, whose numbers are close but not equal (" +
                         makers + ")");
}

/// The budget of the runs of an arm; empty without one.
std::string budget_of(const StudyReport& report, const ArmReport& arm) {
  const auto is_of_arm = [&](const ReportedRun& run) { return run.result.arm == arm.name; };
  const auto run = std::find_if(report.runs.begin(), report.runs.end(), is_of_arm);
  return run == report.runs.end() ? "" : run->budget;
}

/// Marks the arms of another budget than the baseline, which a note names.
void mark_other_budgets(StudyReport& report) {
  const auto budget = budget_of(report, report.arms.front());
  std::vector<std::string> marked;
  for (auto& arm : report.arms) {
    const auto own = budget_of(report, arm);
    if (own == budget) continue;
    arm.other_budget = own;
    marked.push_back(words(arm.name, " (", own, ")"));
  }
  if (marked.empty()) return;
  report.notes.push_back(words("of another budget than ", report.arms.front().name, " (", budget, "): ", listed(marked),
                               "; losses and curves stand side by side, without differences and verdicts"));
}

/// What an arm without a pair of runs is told.
std::string no_pairs(const ArmReport& arm, const ArmReport& baseline) {
  if (!arm.other_budget.empty()) return "no verdict: another budget (" + arm.other_budget + ")";
  return arm.runs.empty() || baseline.runs.empty() ? "no finished pair of runs" : "no seed in common with the baseline";
}

}  // namespace

void read_provenance(const std::string& folder, ReportedRun& run) {
  const auto path = folder + "/provenance.json";
  if (!fs::exists(path)) return;
  const auto fields = parse_json(read_text(path, 16 << 20));
  run.tokenizer = string_at(fields, "/data/tokenizer");
  const auto history = history_of(fields);
  run.made_by = history.made_by;
  for (const auto& changes : history.changes)
    run.changed += (run.changed.empty() ? "changed at " : "; at ") + to_text(changes);
}

std::string changed_name(const std::string& changed) { return ", " + changed.substr(0, changed.find(" with ")); }

void compare_arms(StudyReport& report) {
  check_comparable(report);
  for (const auto& run : report.runs) {
    report.commands.push_back(run.command);
    if (run.state != RunState::done) report.notes.push_back(note_on(run));
  }
  note_makers(report);
  mark_other_budgets(report);
  Curves of_baseline;
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
    mark_outlier(arm, report);
    if (arm.is_baseline) {
      of_baseline = curves;
      continue;
    }
    if (arm.other_budget.empty()) arm.difference_curve = difference_curve(arm, curves, of_baseline, report.rules);
  }
  auto differences = differences_of(report);
  judge(differences, report.rules);
  for (size_t i = 0; i < differences.size(); ++i) {
    auto& arm = report.arms[i + 1];
    arm.difference = differences[i];
    arm.verdict = arm.difference.seeds == 0 ? no_pairs(arm, report.arms.front())
                                            : verdict_words(arm.difference, report.rules, report.unit);
  }
  report.tied = tied_sets(report.arms, report.rules);
  if (auto suites = suite_table(report)) report.tables.push_back(std::move(*suites));
}

StudyReport make_report(const Stages& stages) {
  const auto& plan = stages.compared();
  if (!plan.study.space.items.empty()) return search_report(stages);
  const auto& metric = plan.study.metric;
  StudyReport report{.name = plan.study.study,
                     .unit = unit_words(metric.unit),
                     .metric = metric.objective,
                     .baseline = plan.arms.front().name,
                     .declaration = declaration_of(plan),
                     .source = plan.file,
                     .loss_unit = metric.unit};
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
    report.runs.push_back(reported(plan, planned, status));
    if (status.kept) report.notes.push_back(words("run ", planned.arm, "/", planned.seed, " ", kept_words));
  }
  set_changed_apart(report);
  compare_arms(report);
  for (const auto& change : changes_since_declaration(plan)) report.notes.push_back("declared otherwise: " + change);
  add_stages(report, stages);
  return report;
}

}  // namespace cloze
