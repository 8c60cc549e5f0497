#include "study/report/report_rows.h"

#include <algorithm>

#include "study/plan/declaration.h"
#include "study/report/task_report.h"
#include "study/search/search.h"
#include "study/search/task_tuning.h"
#include "study/search/tuning.h"
#include "study/search/variance.h"

namespace cloze {

namespace {

/// Notes the runs of a stage that were kept as they are.
void add_kept(StudyReport& report, const Plan& plan) {
  int64_t kept = 0;
  std::string example;
  for (const auto& run : plan.runs)
    if (status_of(plan, run).kept && kept++ == 0) example = concat(run.arm, "/", run.seed);
  if (kept == 0) return;
  const auto others = kept == 1 ? "" : concat(" (and ", kept - 1, " more)");
  report.notes.push_back(concat(plan.stage, ": ", example, others, " ", kept_words));
}

void add_tuning(StudyReport& report, const Stages& stages) {
  const auto& plan = stages.compared();
  if (!stages.tuning) return;
  if (!plan.waits_for.empty()) {
    const auto left = unsettled_words(stages.plans[*stages.tuning]);
    report.notes.push_back(left.empty() ? "the runs wait for " + plan.waits_for
                                        : "the search for the tuned keys is not over: " + left);
    return;
  }
  const auto tuning = read_tuning(stages.plans[*stages.tuning], plan.arms);
  if (!tuning) return;
  add_kept(report, stages.plans[*stages.tuning]);
  report.tables.push_back(tuning_table(*tuning));
  for (const auto& note : tuning_notes(*tuning)) report.notes.push_back(note);
}

void add_split(StudyReport& report, const Stages& stages) {
  if (!stages.split) return;
  const auto& split = stages.plans[*stages.split];
  add_kept(report, split);
  report.tables.push_back(variance_table(stages.compared(), split));
  report.notes.emplace_back(
      "shares are of the sum of the variances of single streams, which need not add up to that of all together: "
      "streams interact, and the first seed of the others is one draw of them");
  if (const auto left = unsettled_words(split); !left.empty()) report.notes.push_back("split: " + left);
}

void add_task_tuning(StudyReport& report, const Stages& stages) {
  if (!stages.task_tuning) return;
  const auto& search = stages.plans[*stages.task_tuning];
  const auto found = read_task_tuning(search);
  if (!found || !found->lacks.empty()) {
    report.notes.push_back(found ? "the fine-tunings wait for " + found->lacks
                                 : concat("the search for the fine-tunings is not over: ", unsettled_words(search)));
    return;
  }
  add_kept(report, search);
  report.tables.push_back(task_tuning_table(*found));
  for (const auto& note : task_tuning_notes(*found)) report.notes.push_back(note);
  const auto* by = std::get_if<TaskMetric>(&report.by);
  const auto chosen = by ? chosen_words(*found, by->task) : "";
  if (!chosen.empty()) report.finetuning += "; " + chosen;
}

/// The floors of a metric beside that of its runs: of a task what its words tell.
std::vector<NamedFloor> floors_beside(const StudyMetric& metric, TaskFloors& floors,
                                      const std::vector<ArmOnTask>& arms) {
  const auto* of = std::get_if<TaskMetric>(&metric);
  if (!of) return {};
  const auto finished =
      std::ranges::find_if(arms, [&](const ArmOnTask& one) { return one.task == of->task && !one.figure.empty(); });
  if (finished == arms.end()) return {};
  const auto found = floors.find(of->task, of->figure.empty() ? finished->figure : of->figure, Floor::words);
  return found ? std::vector{*found} : std::vector<NamedFloor>{};
}

void add_tasks(StudyReport& report, const Stages& stages) {
  if (!stages.tasks) return;
  const auto& tasks = stages.plans[*stages.tasks];
  report.finetuning = finetuning_words(tasks);
  add_task_tuning(report, stages);
  if (!tasks.waits_for.empty()) return;
  add_kept(report, tasks);
  const auto found = arms_on_tasks(tasks);
  auto ranks = rank_table(found);
  TaskFloors floors(tasks);
  add_floors(ranks, floors, found);
  const auto columns = ranks.header.size();
  add_suite_columns(ranks, report);
  if (ranks.header.size() > columns) {
    ranks.title = "Tasks and suites";
    report.notes.emplace_back("mean and average rank of the table of tasks and suites are over the tasks");
  }
  report.tables.push_back(std::move(ranks));
  report.tables.push_back(finetuning_table(found));
  for (const auto& note : task_notes(tasks, found)) report.notes.push_back(note);
}

}  // namespace

void add_floors_of_words(StudyReport& report, const Stages& stages) {
  if (!stages.tasks || !stages.plans[*stages.tasks].waits_for.empty()) return;
  const auto& tasks = stages.plans[*stages.tasks];
  const auto found = arms_on_tasks(tasks);
  TaskFloors floors(tasks);
  report.other_floors = floors_beside(report.by, floors, found);
  for (const auto& metric : report.secondary) report.secondary_floors.push_back(floors_beside(metric, floors, found));
}

void add_stages(StudyReport& report, const Stages& stages) {
  const auto& plan = stages.compared();
  add_tuning(report, stages);
  const auto stage_count = plan.study.then.size() + 1;
  const std::span trained(&stages.plans[stages.comparison + 1 - stage_count], stage_count);
  if (const auto untuned = untuned_words(trained); !untuned.empty()) report.notes.push_back(untuned);
  add_split(report, stages);
  add_tasks(report, stages);
  if (!plan.study.vary.empty()) {
    std::string names;
    for (const auto stream : plan.study.vary) names += concat(names.empty() ? "" : ", ", stream);
    report.notes.push_back("seeds vary " + names +
                           " only; intervals and tests hold for these, not for other seeds of the rest");
  }
  if (plan.study.probe_head.share > 0)
    report.notes.push_back(concat("every arm is scored by a new head for ", report.metric,
                                  ", trained on its backbone in the last ", shortest(100 * plan.study.probe_head.share),
                                  " % of the budget"));
}

StudyReport search_report(const Stages& stages) {
  const auto& plan = stages.compared();
  StudyReport report{.name = plan.study.study,
                     .unit = facts_of(plan.metric).unit,
                     .metric = metric_name(plan),
                     .baseline = {},
                     .declaration = declaration_of(plan),
                     .source = plan.file,
                     .by = plan.metric};
  const auto trials = read_trials(stages);
  report.tables.push_back(search_table(trials, plan.metric));
  report.notes = search_notes(stages, trials);
  for (const auto& change : changes_since_declaration(plan)) report.notes.push_back("declared otherwise: " + change);
  return report;
}

}  // namespace cloze
