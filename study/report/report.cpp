#include "study/report/report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/text.h"
#include "run/records/history.h"
#include "study/report/report_rows.h"
#include "study/plan/declaration.h"
#include "study/plan/plan_table.h"
#include "study/plan/task_plan.h"

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
bool has_same_examples(const Pairs& pairs) {
  const auto& first = *pairs.baseline.front();
  if (first.examples.sum.empty() && first.examples.draws.empty()) return false;
  const auto fits = [&](const RunResult* run) {
    return run->text == first.text && run->examples.sum.size() == first.examples.sum.size();
  };
  return std::all_of(pairs.arm.begin(), pairs.arm.end(), fits) &&
         std::all_of(pairs.baseline.begin(), pairs.baseline.end(), fits);
}

Difference difference_of(const Pairs& pairs, const ComparisonRules& rules) {
  const bool has_examples = pairs.arm.size() > 1 && has_same_examples(pairs);
  return compare_seeds(
      values_of(pairs.arm), values_of(pairs.baseline), rules,
      has_examples ? example_error(examples_of(pairs.arm), examples_of(pairs.baseline)) : ExampleError{});
}

/// The difference of a pair of arms with its p, without what a verdict needs besides.
Difference tested(const Pairs& pairs, const ComparisonRules& rules) {
  auto found = paired_t_test(values_of(pairs.arm), values_of(pairs.baseline), rules);
  if (has_same_examples(pairs)) found.examples = example_error(examples_of(pairs.arm), examples_of(pairs.baseline));
  found.p = error_of(found).p(found.mean);
  return found;
}

/// Arms against the first, whose intervals hold all at once.
std::vector<Difference> differences_of(StudyReport& report) {
  std::vector<Pairs> pairs;
  for (size_t i = 1; i < report.arms.size(); ++i) pairs.push_back(paired(report.arms[i], report.arms.front()));
  const auto has_interval = [](const Pairs& of) { return of.arm.size() > 1; };
  report.rules.arms = std::max<int64_t>(1, std::ranges::count_if(pairs, has_interval));
  std::vector<Difference> differences;
  for (const auto& of : pairs) differences.push_back(of.arm.empty() ? Difference{} : difference_of(of, report.rules));
  correct(differences);
  return differences;
}

/// An arm with the value of a secondary metric in place of the first, where that is finite.
ArmReport measured_by(const ArmReport& arm, size_t metric) {
  ArmReport measured{.name = arm.name, .other_budget = arm.other_budget};
  for (const auto& run : arm.runs) {
    auto& one = measured.runs.emplace_back(run);
    score(one, run.secondary[metric]);
    if (!std::isfinite(one.value)) measured.runs.pop_back();
  }
  return measured;
}

/// What the secondary metrics say of each arm, with p values that are corrected over all of them.
void add_secondary(StudyReport& report) {
  std::vector<double> p;
  const auto each_test = [&](const auto& f) {
    for (auto& arm : report.arms)
      for (auto& figure : arm.secondary)
        if (figure.difference.p) f(figure.difference);
  };
  for (size_t i = 0; i < report.secondary.size(); ++i) {
    const ComparisonRules rules{.higher_is_better = facts_of(report.secondary[i]).higher_is_better,
                                .confidence = report.rules.confidence,
                                .power = report.rules.power};
    const auto baseline = measured_by(report.arms.front(), i);
    for (auto& arm : report.arms) {
      const auto measured = measured_by(arm, i);
      std::vector<double> values;
      double floor = 0;
      for (const auto& run : measured.runs) {
        values.push_back(run.value);
        floor += run.floor / static_cast<double>(measured.runs.size());
      }
      auto& figure = arm.secondary.emplace_back(SecondaryFigure{.summary = summarize(values), .floor = floor});
      const auto pairs = arm.is_baseline ? Pairs{} : paired(measured, baseline);
      if (!pairs.arm.empty()) figure.difference = difference_of(pairs, rules);
    }
  }
  each_test([&](const Difference& difference) { p.push_back(*difference.p); });
  const auto corrected = holm(p);
  size_t next = 0;
  each_test([&](Difference& difference) { difference.p_holm = corrected[next++]; });
  for (auto& table : secondary_tables(report)) report.tables.push_back(std::move(table));
}

/// Marks the run that is the outlier of its arm.
void mark_outlier(const ArmReport& arm, StudyReport& report) {
  std::vector<double> values;
  for (const auto& run : arm.runs) values.push_back(run.value);
  const auto found = outlier(values);
  if (!found) return;
  for (auto& run : report.runs) run.outlying = run.outlying || run.result.folder == arm.runs[found->index].folder;
  report.notes.push_back(concat("run ", arm.name, "/", arm.runs[found->index].seed, " is an outlier (",
                                significant(values[found->index], 5), ", the others of the arm have a mean of ",
                                significant(found->others.mean, 5), "; p ", significant(found->p, 2),
                                "); it counts like the others"));
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

/// Why the verdict on an arm is held back; empty where it stands. Runs that fail are those that do worst: an arm that
/// loses more of them looks better than it is, and only a verdict against it stands.
std::string held_back(const ArmReport& arm, const ArmReport& baseline) {
  const auto verdict = arm.difference.verdict;
  const bool is_one = is_apart(arm) || verdict == Verdict::tied;
  if (!is_one || !fail_unequally(arm, baseline)) return "";
  const bool arm_loses_more = arm.failed.size() * baseline.runs.size() > baseline.failed.size() * arm.runs.size();
  if (verdict == (arm_loses_more ? Verdict::worse : Verdict::better)) return "";
  const auto share = [](const ArmReport& one) {
    return concat(one.failed.size(), " of ", one.runs.size() + one.failed.size());
  };
  return concat("held back: ", share(arm), " runs failed, of ", baseline.name, " ", share(baseline),
                ", and those that are left are the better ones");
}

/// The arms with several runs, the best first.
std::vector<const ArmReport*> ranked_arms(const StudyReport& report) {
  std::vector<const ArmReport*> ranked;
  for (const auto& arm : report.arms)
    if (arm.runs.size() > 1 && arm.other_budget.empty()) ranked.push_back(&arm);
  std::sort(ranked.begin(), ranked.end(), [&](const ArmReport* a, const ArmReport* b) {
    return report.rules.higher_is_better ? a->summary.mean > b->summary.mean : a->summary.mean < b->summary.mean;
  });
  return ranked;
}

using PlacePairs = std::set<std::pair<size_t, size_t>>;

/// The places of arms that are told apart: from the baseline by the verdict, from one another by the p of all such
/// pairs, corrected by Holm. Arms without common seeds, and those that fail unequally often, are not compared.
PlacePairs pairs_apart(const std::vector<const ArmReport*>& ranked, StudyReport& report) {
  PlacePairs apart;
  std::vector<std::pair<size_t, size_t>> tested_at;
  std::vector<Difference> differences;
  for (size_t a = 0; a < ranked.size(); ++a)
    for (size_t b = a + 1; b < ranked.size(); ++b) {
      const auto both = paired(*ranked[a], *ranked[b]);
      const auto* other = ranked[a]->is_baseline ? ranked[b] : ranked[b]->is_baseline ? ranked[a] : nullptr;
      const bool is_incomparable = both.arm.size() < 2 || fail_unequally(*ranked[a], *ranked[b]);
      if (is_incomparable || (other && is_apart(*other))) apart.insert({a, b});
      if (is_incomparable || other) continue;
      tested_at.emplace_back(a, b);
      differences.push_back(tested(both, report.rules));
    }
  correct(differences);
  for (size_t i = 0; i < differences.size(); ++i) {
    const auto& [a, b] = tested_at[i];
    report.pairs.push_back({ranked[a]->name, ranked[b]->name, differences[i]});
    if (*differences[i].p_holm < 1 - report.rules.confidence) apart.insert({a, b});
  }
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

/// The budget of a run and of its head.
std::string budget_of(const Plan& plan, const PlannedRun& run) {
  std::string later;
  for (const auto& stage : plan.study.then) later += ", then " + budget_words(stage.budget);
  if (plan.study.budget.limited()) return budget_words(plan.study.budget) + later;
  const auto network = budget_words(run.network_config().train.budget);
  return run.is_probe() ? concat(network, " and ", budget_words(run.config.train.budget), " of the head") : network;
}

/// A planned run with its result, where it is done. Throws DataError for one that had ended and lost its result.
ReportedRun reported(const Plan& plan, const PlannedRun& planned, const RunStatus& status) {
  const auto folder = run_path(plan, planned);
  require<DataError>(status.lost_result.empty(), status.lost_result);
  ReportedRun run{.result = {.arm = planned.arm, .seed = planned.seed, .folder = folder},
                  .state = status.state,
                  .message = status.message,
                  .command = concat("cloze pretrain ", shell_word(config_path(plan, planned)), " --run ",
                                    shell_word(folder + "-again"))};
  run.budget = budget_of(plan, planned);
  if (status.state != RunState::done) return run;
  if (const auto missing = missing_finetunings(plan, plan.metric, planned); !missing.empty()) {
    const bool is_one_failed = std::get<TaskMetric>(plan.metric).failed.contains(folder);
    run.state = is_one_failed ? RunState::failed : RunState::waiting;
    run.message = missing;
    return run;
  }
  for (const auto& metric : plan.secondary)
    if (const auto missing = missing_finetunings(plan, metric, planned); !missing.empty())
      run.message += (run.message.empty() ? "" : ", ") + missing;
  run.curve = read_curve(plan, planned);
  run.result = read_result(plan, planned, run.curve);
  run.result.secondary = read_secondary(plan, planned);
  for (const auto& earlier : planned.earlier) read_provenance(earlier, run);
  read_provenance(folder, run);
  if (std::isfinite(run.result.value)) return run;
  run.state = RunState::failed;
  run.message = concat("its ", std::holds_alternative<LossMetric>(plan.metric) ? "held-out loss" : metric_name(plan),
                       " is not finite");
  return run;
}

/// Makes arms of the finished runs that were changed on their way, each change one, after those of the plan.
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
    marked.push_back(concat(arm.name, " (", own, ")"));
  }
  if (marked.empty()) return;
  report.notes.push_back(concat("of another budget than ", report.arms.front().name, " (", budget,
                                "): ", listed(marked),
                                "; losses and curves stand side by side, without differences and verdicts"));
}

/// The verdict text of an arm without paired runs.
std::string no_pairs(const ArmReport& arm, const ArmReport& baseline) {
  if (!arm.other_budget.empty()) return "no verdict: another budget (" + arm.other_budget + ")";
  return arm.runs.empty() || baseline.runs.empty() ? "no finished pair of runs" : "no seed in common with the baseline";
}

/// The end of the interval of an arm's mean on the side of the floor, over seeds and items; of a single run its value.
double bound_of(const ArmReport& arm, const ComparisonRules& rules) {
  RunResult nothing = arm.runs.front();  // whose value is 0, item by item
  nothing.value = 0;
  std::ranges::fill(nothing.examples.sum, 0);
  std::ranges::fill(nothing.examples.draws, 0);
  Pairs pairs{.baseline = std::vector<const RunResult*>(arm.runs.size(), &nothing)};
  for (const auto& run : arm.runs) pairs.arm.push_back(&run);
  if (pairs.arm.size() < 2) return arm.summary.mean;
  const auto interval = deciding_interval(tested(pairs, rules), {.confidence = rules.confidence});
  return rules.higher_is_better ? interval.low : interval.high;
}

/// Whether an arm is better than its floor, the majority of a test part by more than its interval.
bool has_left_floor(const ArmReport& arm, const StudyReport& report) {
  if (arm.floor == 0 || arm.runs.empty()) return arm.floor == 0;
  const bool is_of_task = std::holds_alternative<TaskMetric>(report.by);
  const double value = is_of_task ? bound_of(arm, report.rules) : arm.summary.mean;
  return report.rules.higher_is_better ? value > arm.floor : value < arm.floor;
}

/// The floor of each arm; verdicts of a study of which no arm is below it are taken back.
void add_floor(StudyReport& report) {
  std::vector<std::string> at_floor;
  bool is_one_below = false;
  for (auto& arm : report.arms) {
    for (const auto& run : arm.runs) arm.floor += run.floor;
    if (!arm.runs.empty()) arm.floor /= static_cast<double>(arm.runs.size());
    if (arm.floor > 0) report.floor = report.floor > 0 ? std::min(report.floor, arm.floor) : arm.floor;
    const bool has_left = has_left_floor(arm, report);
    if (!has_left) at_floor.push_back(arm.name);
    is_one_below = is_one_below || (!arm.runs.empty() && has_left);
  }
  if (at_floor.empty()) return;
  const bool is_of_task = std::holds_alternative<TaskMetric>(report.by);
  const auto floor = concat(facts_of(report.by).floor, " (", significant(report.floor, 5),
                            report.unit.empty() ? "" : " " + report.unit,
                            is_of_task ? concat(", by the ", interval_head(report), " of the mean") : "", ")");
  if (is_one_below) {
    report.notes.push_back(concat("no better than ", floor, ": ", listed(at_floor),
                                  "; a difference between such "
                                  "networks says nothing of what they would learn"));
    return;
  }
  report.notes.push_back(concat("no arm has left ", floor,
                                ", so that there is no verdict; train longer, or with a "
                                "higher learning rate"));
  report.tied.clear();
  for (auto& arm : report.arms) {
    if (arm.is_baseline) continue;
    arm.verdict = "no arm has left " + facts_of(report.by).floor;
    arm.difference.verdict = Verdict::undecided;
  }
}

/// Names the arms that are no better than what the words of a task tell. Their verdicts stand: the difference is one,
/// of networks that a regression beats.
void note_other_floors(StudyReport& report) {
  for (const auto& [name, value] : report.other_floors) {
    std::vector<std::string> at_floor;
    for (const auto& arm : report.arms) {
      const bool is_better = report.rules.higher_is_better ? arm.summary.mean > value : arm.summary.mean < value;
      if (!arm.runs.empty() && !is_better) at_floor.push_back(arm.name);
    }
    if (at_floor.empty()) continue;
    report.notes.push_back(concat("no better than a regression on ", name, " (", significant(value, 5),
                                  report.unit.empty() ? "" : " " + report.unit, "): ", listed(at_floor)));
  }
}

}  // namespace

void read_provenance(const std::string& folder, ReportedRun& run) {
  const auto path = folder + "/provenance.json";
  if (!fs::exists(path)) return;
  const auto fields = parse_json(read_text(path, 16 << 20));
  run.tokenizer = string_at(fields, "/data/tokenizer");
  run.texts = string_at(fields, "/data/fingerprint");
  const auto history = history_of(fields);
  run.made_by = history.made_by;
  run.is_dirty = history.is_dirty;
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
      } else if (run.result.arm == arm.name && run.state == RunState::failed && is_own_failure(run.message)) {
        arm.failed.push_back(run.result.seed);
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
  const auto differences = differences_of(report);
  for (size_t i = 0; i < differences.size(); ++i) {
    auto& arm = report.arms[i + 1];
    arm.difference = differences[i];
    arm.verdict = arm.difference.seeds == 0 ? no_pairs(arm, report.arms.front())
                                            : verdict_words(arm.difference, report.rules, report.unit);
    if (const auto why = held_back(arm, report.arms.front()); !why.empty()) {
      arm.verdict = why;
      arm.difference.verdict = Verdict::held_back;
    }
  }
  set_tied(report);
  add_floor(report);
  note_other_floors(report);
  note_seeds(report);
  note_documents(report);
  note_movement(report);
  add_secondary(report);
  if (auto suites = suite_table(report)) report.tables.push_back(std::move(*suites));
}

StudyReport make_report(const Stages& stages) {
  auto plan = stages.compared();
  if (stages.tasks) take_finetunings(plan, stages.plans[*stages.tasks]);
  if (!plan.study.space.items.empty()) return search_report(stages);
  const auto& metric = plan.study.metric;
  StudyReport report{.name = plan.study.study,
                     .unit = facts_of(plan.metric).unit,
                     .metric = metric_name(plan),
                     .baseline = plan.arms.front().name,
                     .declaration = declaration_of(plan),
                     .source = plan.file,
                     .by = plan.metric,
                     .secondary = plan.secondary};
  report.rules = {.margin = metric.better_by,
                  .higher_is_better = facts_of(plan.metric).higher_is_better,
                  .confidence = metric.confidence,
                  .power = metric.power};
  for (const auto& arm : plan.arms) {
    auto& one = report.arms.emplace_back(ArmReport{.name = arm.name});
    for (const auto& [key, value] : arm.keys) one.differs.push_back(key + ": " + one_line(value));
  }
  for (const auto& planned : plan.runs) {
    const auto status = status_of(plan, planned);
    report.runs.push_back(reported(plan, planned, status));
    const auto name = concat("run ", planned.arm, "/", planned.seed);
    if (status.kept) report.notes.push_back(concat(name, " ", kept_words));
    const auto& run = report.runs.back();
    if (run.state == RunState::done && !run.message.empty())
      report.notes.push_back(concat(name, ": ", run.message, "; it has no value there"));
  }
  set_changed_apart(report);
  add_floors_of_words(report, stages);
  compare_arms(report);
  if (lacks_declaration(plan))
    report.notes.push_back(
        "declaration.json is missing, so that nobody can tell what was declared before the first run");
  for (const auto& change : changes_since_declaration(plan)) report.notes.push_back("declared otherwise: " + change);
  add_stages(report, stages);
  return report;
}

}  // namespace cloze
