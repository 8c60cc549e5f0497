#include "study/report/report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/spelling.h"
#include "core/text.h"
#include "study/execution/runs.h"
#include "study/report/report_rows.h"

namespace cloze {

namespace {

/// The budget of a run and of its head.
std::string budget_of(const Stages& stages, const PlannedRun& run) {
  const auto& study = stages.compared().study;
  std::string later;
  for (const auto& stage : study.then) later += ", then " + budget_words(stage.budget);
  if (study.budget.limited()) return budget_words(study.budget) + later;
  const auto own = budget_words(run.config.train.budget);
  if (run.kind != RunKind::probe) return own;
  return concat(budget_words(stages.input_of(run).config.train.budget), " and ", own, " of the head");
}

/// A planned run with its result, where it is done. Throws DataError for one that had ended and lost its result.
ReportedRun reported(const Stages& stages, const Plan& plan, const PlannedRun& planned, const RunStatus& status) {
  const auto& folder = planned.folder;
  require<DataError>(status.lost_result.empty(), status.lost_result);
  ReportedRun run{
      .result = {{}, {}, planned.arm, planned.seed, folder},
      .state = status.state,
      .message = status.message,
      .command = concat("cloze pretrain ", shell_word(config_path(planned)), " --run ", shell_word(folder + "-again"))};
  run.budget = budget_of(stages, planned);
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
  run.provenance = read_provenance(folder, planned.counted_inputs());
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
    if (run.provenance.changed.empty() || run.state != RunState::done) continue;
    const auto& changed = run.provenance.changed;
    auto& name = names[{run.result.arm, changed}];
    if (name.empty()) {
      const auto is_taken = [&](const ArmReport& arm) { return arm.name == name; };
      name = run.result.arm + changed_name(changed);
      if (std::ranges::any_of(report.arms, is_taken)) name = run.result.arm + ", " + changed;
      const auto planned = std::ranges::find(report.arms, run.result.arm, &ArmReport::name);
      auto differs = planned->differs;
      differs.push_back(changed);
      report.arms.push_back({.name = name, .differs = differs});
    }
    run.result.arm = name;
  }
}

}  // namespace

StudyReport make_report(const Stages& stages) {
  const auto plan = stages.tasks ? with_finetunings(stages.compared(), stages.plans[*stages.tasks]) : stages.compared();
  if (!plan.study.space.items.empty()) return search_report(stages);
  const auto& metric = plan.study.metric;
  StudyReport report{.name = plan.study.study,
                     .unit = traits_of(plan.metric).unit,
                     .metric = metric_name(plan),
                     .baseline = plan.arms.front().name,
                     .declaration = declaration_of(plan),
                     .source = plan.file,
                     .by = plan.metric,
                     .secondary = plan.secondary};
  report.rules = {.margin = metric.better_by,
                  .higher_is_better = traits_of(plan.metric).higher_is_better,
                  .confidence = metric.confidence,
                  .power = metric.power};
  for (const auto& arm : plan.arms) {
    auto& one = report.arms.emplace_back(ArmReport{.name = arm.name});
    for (const auto& [key, value] : arm.keys) one.differs.push_back(key + ": " + one_line(value));
  }
  for (const auto& planned : plan.runs) {
    const auto status = status_of(plan, planned);
    report.runs.push_back(reported(stages, plan, planned, status));
    const auto name = "run " + planned.name();
    if (status.kept) report.notes.push_back(concat(name, " ", kept_words));
    const auto& run = report.runs.back();
    if (run.state == RunState::done && !run.message.empty())
      report.notes.push_back(concat(name, ": ", run.message, "; it has no value there"));
  }
  set_changed_apart(report);
  add_floors_of_words(report, stages);
  check_comparable(report);
  compare_arms(report);
  describe_comparison(report);
  if (lacks_declaration(plan))
    report.notes.push_back(
        "declaration.json is missing, so that nobody can tell what was declared before the first run");
  for (const auto& change : changes_since_declaration(plan)) report.notes.push_back("declared otherwise: " + change);
  add_stages(report, stages);
  return report;
}

}  // namespace cloze
