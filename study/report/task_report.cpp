#include "study/report/task_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/contains.h"
#include "core/error.h"
#include "core/text.h"
#include "run/run_files.h"
#include "study/execution/runs.h"
#include "study/measures/pairs.h"
#include "study/measures/task_value.h"
#include "study/report/report_rows.h"
#include "study/search/stages.h"
#include "study/search/task_plan.h"
#include "tasks/scores/task_metric.h"

namespace cloze {

namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<std::string> distinct(const std::vector<ArmOnTask>& arms, std::string ArmOnTask::* field) {
  std::vector<std::string> names;
  for (const auto& one : arms)
    if (!contains(names, one.*field)) names.push_back(one.*field);
  return names;
}

const ArmOnTask* find_in(const std::vector<ArmOnTask>& arms, const std::string& arm, const std::string& task) {
  const auto at = std::ranges::find_if(arms, [&](const auto& one) { return one.arm == arm && one.task == task; });
  return at == arms.end() || at->values.empty() ? nullptr : &*at;
}

/// The mean of an arm on a task, of which more is better; an undefined one is worse than all others.
double height_of(const ArmOnTask& one) {
  const double mean = one.mean();
  if (std::isnan(mean)) return -std::numeric_limits<double>::infinity();
  return is_error(one.metric) ? -mean : mean;
}

/// The rank of an arm on a task, 1 for the best; equal means share theirs. Arms that are held apart have none.
double rank_of(const std::vector<ArmOnTask>& arms, const ArmOnTask& one) {
  double better = 0, equal = 0;
  const double own = height_of(one);
  for (const auto& other : arms) {
    if (other.task != one.task || other.values.empty() || !other.changed.empty()) continue;
    better += height_of(other) > own;
    equal += height_of(other) == own;
  }
  return better + (equal + 1) / 2;
}

/// `82.91 ± 0.40` of the values of an arm on a task: runs, or of one run its fine-tunings.
std::string cell_of(const ArmOnTask& one) {
  std::vector<double> values;
  for (const auto& of_run : one.values) values.push_back(mean_of(of_run));
  const auto summary = summarize(values.size() == 1 ? one.values.front() : values);
  const auto decimals = is_error(one.metric) ? 4 : 2;
  const auto text = std::isfinite(summary.mean) ? to_text(summary, decimals) : "undefined";
  return one.unlearned > 0 ? text + " *" : text;
}

/// Whether a metric is a correlation or an agreement, from -1 on.
bool may_be_negative(const std::string& metric) {
  return contains(std::array{"pearson", "spearman", "mcc", "kappa"}, metric);
}

/// The means over these tasks of the runs that have all of them.
std::vector<double> means_of_runs(const std::vector<const ArmOnTask*>& tasks) {
  std::vector<double> means;
  if (tasks.empty()) return means;
  for (const auto& run : tasks.front()->runs) {
    std::vector<double> of_run;
    for (const auto* task : tasks) {
      const auto at = std::ranges::find(task->runs, run) - task->runs.begin();
      if (at < std::ssize(task->values)) of_run.push_back(mean_of(task->values[static_cast<size_t>(at)]));
    }
    if (of_run.size() == tasks.size()) means.push_back(mean_of(of_run));
  }
  return means;
}

/// `82.91 [82.10, 83.72]`: the mean over these tasks of the runs that have all of them, with its interval where there
/// are several; empty where none has, and for an undefined metric.
std::string mean_over_tasks(const std::vector<const ArmOnTask*>& tasks) {
  const auto summary = summarize(means_of_runs(tasks));
  if (summary.count == 0 || !std::isfinite(summary.mean)) return "";
  if (summary.count < 2) return fixed(summary.mean, 2);
  double squares = 0;  // of what the items of each task leave open
  for (const auto* task : tasks)
    squares += std::pow(ExampleError{.items = task->items}.reach(0.05) / static_cast<double>(tasks.size()), 2);
  const auto interval = *mean_interval(summary, 0.95);
  const double reach = std::hypot(interval.high - summary.mean, std::sqrt(squares));
  const bool are_shares = std::ranges::none_of(tasks, [](const auto* task) { return may_be_negative(task->metric); });
  const double low = std::max(are_shares ? 0.0 : -100.0, summary.mean - reach);
  return concat(fixed(summary.mean, 2), " [", fixed(low, 2), ", ", fixed(std::min(100.0, summary.mean + reach), 2),
                "]");
}

/// The recipe of a plan of fine-tunings.
std::string recipe_words(const Plan& tasks) {
  const auto& options = tasks.runs.front().finetuning.options;
  const auto like = std::ranges::find(options, "--like");
  return like == options.end() ? "the recipe that each task file names, else google-bert" : "the recipe " + *(like + 1);
}

std::string sd_cell(double sd, const std::string& metric) {
  return std::isnan(sd) ? "" : fixed(sd, is_error(metric) ? 4 : 2);
}

/// The arm of a fine-tuning and, of runs that no study planned, its run.
std::string arm_of(const PlannedRun& run) { return run.finetuning.arm; }

}  // namespace

double ArmOnTask::mean() const {
  std::vector<double> means;
  for (const auto& of_run : values) means.push_back(mean_of(of_run));
  return mean_of(means);
}

int64_t ArmOnTask::count() const {
  int64_t all = 0;
  for (const auto& of_run : values) all += std::ssize(of_run);
  return all;
}

SplitSpread split_spread(const std::vector<std::vector<double>>& values) {
  SplitSpread spread{.of_runs = std::nan(""), .of_finetunings = std::nan("")};
  double within = 0, all = 0, squares = 0;
  std::vector<double> means;
  for (const auto& of_run : values) {
    means.push_back(mean_of(of_run));
    for (const double value : of_run) within += std::pow(value - means.back(), 2);
    const auto n = static_cast<double>(of_run.size());
    all += n;
    squares += n * n;
  }
  const auto runs = static_cast<double>(values.size());
  if (all <= runs) return spread;
  const double mean_within = within / (all - runs);
  spread.of_finetunings = std::sqrt(mean_within);
  if (runs < 2) return spread;
  double grand = 0, between = 0;
  for (size_t i = 0; i < values.size(); ++i) grand += static_cast<double>(values[i].size()) * means[i] / all;
  for (size_t i = 0; i < values.size(); ++i)
    between += static_cast<double>(values[i].size()) * std::pow(means[i] - grand, 2);
  const double per_run = (all - squares / all) / (runs - 1);
  spread.of_runs = std::sqrt(std::max(0.0, (between / (runs - 1) - mean_within) / per_run));
  return spread;
}

namespace {

/// Names of arms with what was changed of their runs, each change one of its own.
class ArmNames {
 public:
  std::string of(const std::string& arm, const std::string& changed) {
    if (changed.empty()) return arm;
    auto name = arm + changed_name(changed);
    const auto is_other = [&](const auto& known) {
      return known.second == name && known.first != std::pair(arm, changed);
    };
    if (std::ranges::any_of(names_, is_other)) name = arm + ", " + changed;
    return names_.emplace(std::pair(arm, changed), name).first->second;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::string> names_{};  // of arm and change
};

}  // namespace

std::vector<ArmOnTask> arms_on_tasks(const Plan& tasks) {
  std::vector<ArmOnTask> arms;
  ArmNames names;
  std::map<std::string, size_t> row_of;  // of a run with its task, in its arm
  for (const auto& run : tasks.runs) {
    const auto& job = run.finetuning;
    const bool is_done = status_of(tasks, run).state == RunState::done;
    const auto changed = is_done ? read_provenance(run.folder, run.inputs).changed : "";
    const auto arm = names.of(arm_of(run), changed);
    const auto is_same = [&](const ArmOnTask& one) {
      return one.arm == arm && one.task == job.task && one.changed == changed;
    };
    auto at = std::ranges::find_if(arms, is_same);
    if (at == arms.end()) at = arms.insert(arms.end(), ArmOnTask{.arm = arm, .task = job.task, .changed = changed});
    if (!is_done) continue;
    const auto outcome = outcome_of(run.folder);
    at->metric = outcome.metric;
    at->items = is_error(outcome.metric) ? 0 : outcome.items;
    at->unlearned += !outcome.learned;
    const auto [row, is_new] =
        row_of.emplace(run.config.init.from + "\n" + job.task + "\n" + arm + changed, at->values.size());
    if (is_new) at->values.emplace_back();
    if (is_new) at->runs.push_back(run.config.init.from);
    at->values[row->second].push_back(outcome.value);
  }
  return arms;
}

Table rank_table(const std::vector<ArmOnTask>& arms) {
  const auto tasks = distinct(arms, &ArmOnTask::task);
  std::vector<std::string> heads{"arm"};
  for (const auto& task : tasks) {
    std::string metric;
    for (const auto& one : arms)
      if (one.task == task && !one.metric.empty()) metric = one.metric;
    heads.push_back(metric.empty() ? task : task + " " + metric + (is_error(metric) ? "" : " %"));
  }
  heads.insert(heads.end(), {"mean", "average rank"});
  Table table{.title = "Tasks", .header = columns_of_numbers(heads)};
  for (const auto& arm : distinct(arms, &ArmOnTask::arm)) {
    std::vector<std::string> row{arm};
    std::vector<const ArmOnTask*> shares;
    std::vector<double> ranks;
    bool has_all = true, is_apart = false;
    for (const auto& task : tasks) {
      const auto* one = find_in(arms, arm, task);
      row.push_back(one ? cell_of(*one) : "");
      has_all = has_all && one;  // of other tasks each arm would have another mean
      if (!one) continue;
      is_apart = is_apart || !one->changed.empty();
      ranks.push_back(rank_of(arms, *one));
      if (!is_error(one->metric)) shares.push_back(one);
    }
    row.push_back(has_all ? mean_over_tasks(shares) : "");
    row.push_back(has_all && !is_apart ? fixed(mean_of(ranks), 2) : "");
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table finetuning_table(const std::vector<ArmOnTask>& arms) {
  Table table{.title = "Spread of fine-tuning",
              .header = columns_of_numbers(
                  {"task", "arm", "runs", "fine-tunings", "sd of runs", "sd of fine-tunings", "did not learn"})};
  table.header[1].kind = ColumnKind::text;
  for (const auto& one : arms) {
    const auto spread = split_spread(one.values);
    table.rows.push_back({one.task, one.arm, std::to_string(one.values.size()), std::to_string(one.count()),
                          sd_cell(spread.of_runs, one.metric), sd_cell(spread.of_finetunings, one.metric),
                          std::to_string(one.unlearned)});
  }
  return table;
}

namespace {

/// The finished fine-tunings of one run on one task, by their seeds.
using BySeed = std::map<int64_t, MetricValue>;

std::map<std::string, std::map<std::string, BySeed>> values_by_task(const Plan& tasks) {
  std::map<std::string, std::map<std::string, BySeed>> seeds;  // of task, arm
  for (const auto& run : tasks.runs)
    if (status_of(tasks, run).state == RunState::done && read_provenance(run.folder).changed.empty())
      seeds[run.finetuning.task][arm_of(run)][run.finetuning.seed] = value_of_finetunings({run.folder}, "");
  return seeds;
}

/// The finite ones. Throws DataError for values of other items than those of the baseline.
ArmValues finite_values(const BySeed& arm, const BySeed& baseline) {
  ArmValues values;
  for (const auto& [seed, value] : arm) {
    const auto other = baseline.find(seed);
    if (!std::isfinite(value.value) || (other != baseline.end() && !std::isfinite(other->second.value))) continue;
    require<DataError>(other == baseline.end() || value.text == other->second.text,
                       "runs were judged on different items of ", value.measured,
                       "; make them again with one task file");
    values.push_back({seed, &value});
  }
  return values;
}

}  // namespace

std::string difference_words(const Plan& tasks) {
  std::vector<std::string> arms;
  for (const auto& run : tasks.runs)
    if (!contains(arms, arm_of(run))) arms.push_back(arm_of(run));
  const auto count = std::ssize(task_names(tasks)) * (std::ssize(arms) - 1);
  return concat(
      "differences are paired by the seeds of fine-tuning; their 95 % intervals join Student's over seeds and "
      "that over the items of a test part (Banerjee 1960)",
      count > 1 ? concat(", for ", count, " comparisons at once (Bonferroni)") : "",
      "; p is that of the same error, corrected by Holm");
}

namespace {

/// The rules of a difference; no margin is stated.
ComparisonRules rules_of(size_t comparisons, bool is_of_error) {
  return {.higher_is_better = !is_of_error, .arms = static_cast<int64_t>(comparisons)};
}

}  // namespace

std::vector<RunsOnTask> differences_of_runs(const Plan& tasks) {
  std::vector<std::string> arms;
  for (const auto& run : tasks.runs)
    if (!contains(arms, arm_of(run))) arms.push_back(arm_of(run));
  std::vector<RunsOnTask> all;
  if (arms.size() < 2) return all;
  const auto names = task_names(tasks);
  auto values = values_by_task(tasks);
  for (const auto& task : names)
    for (size_t i = 1; i < arms.size(); ++i) {
      auto& of_task = values[task];
      const auto& first = of_task[arms.front()];
      const bool is_of_error = !first.empty() && is_error(first.begin()->second.measured.substr(task.size() + 1));
      const auto rules = rules_of(names.size() * (arms.size() - 1), is_of_error);
      const auto& own = of_task[arms[i]];
      const Pairs pairs(finite_values(own, first), finite_values(first, own));
      all.push_back({task, arms[i], is_of_error, pairs.compare(rules)});
    }
  std::vector<Difference*> differences;
  for (auto& one : all) differences.push_back(&one.difference);
  correct(differences);
  return all;
}

Table difference_table(const std::vector<RunsOnTask>& differences, const std::string& first) {
  Table table{.title = "Differences to " + first,
              .header = columns_of_numbers({"task", "run", "difference", "95 % interval", "p (Holm)", "verdict"})};
  table.header[1].kind = table.header.back().kind = ColumnKind::text;
  for (const auto& [task, run, is_of_error, one] : differences) {
    const int decimals = is_of_error ? 4 : 2;
    const auto rules = rules_of(differences.size(), is_of_error);
    const auto words = one.seeds == 0 ? "no finished pair" : verdict_words(one, rules, is_of_error ? "" : "points");
    table.rows.push_back({task, run, one.seeds > 0 ? fixed(one.mean, decimals, true) : "",
                          to_text(one.interval, decimals), one.p_holm ? significant(*one.p_holm, 2) : "", words});
  }
  return table;
}

nlohmann::json numbers_of(const std::vector<ArmOnTask>& arms, const std::vector<RunsOnTask>& differences) {
  nlohmann::json of_arms = nlohmann::json::array(), of_runs = nlohmann::json::array();
  for (const auto& one : arms)
    of_arms.push_back({{"arm", one.arm},
                       {"task", one.task},
                       {"figure", one.metric},
                       {"runs", one.runs},
                       {"values", one.values},
                       {"unlearned", one.unlearned}});
  for (const auto& one : differences) {
    of_runs.push_back(parts_json(one.difference));
    of_runs.back().update({{"task", one.task}, {"run", one.run}});
  }
  return {{"arms", of_arms}, {"differences", of_runs}};
}

std::string finetuning_words(const Plan& tasks) {
  const auto& terms = tasks.study.tasks;
  const auto text = concat("Fine-tuned with ", terms.seeds, terms.seeds == 1 ? " seed" : " seeds", " by ",
                           recipe_words(tasks), ", the same for all runs");
  return terms.tune.items.empty() ? text : concat(text, " but for ", keys_of_search(terms));
}

namespace {

/// `test parts: cats of 60 items and dogs of 40 items`, of the tasks with a finished fine-tuning; empty without any.
std::string test_parts(const Plan& tasks) {
  std::vector<std::string> parts;
  for (const auto& task : task_names(tasks)) {
    const auto done = std::ranges::find_if(tasks.runs, [&](const PlannedRun& run) {
      return run.finetuning.task == task && status_of(tasks, run).state == RunState::done;
    });
    if (done == tasks.runs.end()) continue;
    const auto items = read_prepared_split(done->folder + "/" + task_folder, "test").items.size();
    parts.push_back(concat(task, " of ", thousands(items), " items"));
  }
  return parts.empty() ? "" : "test parts: " + listed(parts);
}

}  // namespace

std::vector<std::string> task_notes(const Plan& tasks, const std::vector<ArmOnTask>& arms) {
  std::vector<std::string> notes;
  if (const auto parts = test_parts(tasks); !parts.empty()) notes.push_back(parts);
  std::string unlearned;
  for (const auto& one : arms)
    if (one.unlearned > 0)
      unlearned += concat(unlearned.empty() ? "" : ", ", one.arm, " on ", one.task, " (", one.unlearned, " of ",
                          one.count(), ")");
  if (!unlearned.empty())
    notes.push_back(concat("* did not learn, not being shown to be better than the floor on the valid part: ",
                           unlearned, "; they count like the others"));
  for (const auto& one : arms)
    if (!one.changed.empty())
      notes.push_back(concat(one.arm, " on ", one.task, ": ", one.changed,
                             "; it is held apart from fine-tunings that never changed"));
  notes.push_back(
      concat("all runs were fine-tuned alike, by ", recipe_words(tasks),
             tasks.study.tasks.tune.items.empty()
                 ? "; its rates were not searched for any arm"
                 : concat("; the search chose ", keys_of_search(tasks.study.tasks), " for each arm and task")));
  if (std::ranges::any_of(arms, [](const ArmOnTask& one) { return one.runs.size() > 1; }))
    notes.emplace_back(
        "the mean over tasks is of the pretraining runs that have all of them; its 95 % interval joins Student's over "
        "these and what the items of the test parts leave open");
  for (const auto& run : tasks.runs)
    if (const auto status = status_of(tasks, run); failed_by_itself(status) && !status.is_of_failed_source)
      notes.push_back(concat("fine-tuning ", run.name(), " failed: ", status.message));
  if (const auto left = unsettled_words(tasks); !left.empty()) notes.push_back("tasks: " + left);
  return notes;
}

void add_floors(Table& ranks, TaskFloors& floors, const std::vector<ArmOnTask>& arms) {
  // Of a task without a finished fine-tuning nothing is known, not even its metric.
  std::vector<std::pair<std::string, std::string>> tasks;
  for (const auto& task : distinct(arms, &ArmOnTask::task)) {
    const auto finished =
        std::ranges::find_if(arms, [&](const auto& one) { return one.task == task && !one.metric.empty(); });
    tasks.emplace_back(task, finished == arms.end() ? "" : finished->metric);
  }
  for (const auto floor : {Floor::constant, Floor::words}) {
    std::vector<std::string> names, cells;
    double sum = 0, count = 0;
    bool has_all = true;
    for (const auto& [task, metric] : tasks) {
      const auto floor_score = metric.empty() ? std::nullopt : floors.find(task, metric, floor);
      cells.push_back(floor_score ? fixed(floor_score->value, is_error(metric) ? 4 : 2) : "");
      if (floor_score && !contains(names, floor_score->name)) names.push_back(floor_score->name);
      if (is_error(metric)) continue;  // which a mean of points leaves out
      has_all = has_all && floor_score;
      sum += floor_score ? floor_score->value : 0;
      ++count;
    }
    if (names.empty()) continue;
    auto& row = ranks.rows.emplace_back();
    row.push_back("floor: " + listed(names));
    row.insert(row.end(), cells.begin(), cells.end());
    row.push_back(has_all && count > 0 ? fixed(sum / count, 2) : "");
    row.resize(ranks.header.size());
  }
}

}  // namespace cloze
