#include "study/report/report_rows.h"

#include <algorithm>

#include "core/report/chart.h"
#include "core/text.h"
#include "study/execution/runs.h"
#include "study/report/task_report.h"
#include "study/search/stages.h"
#include "study/search/tuning.h"

namespace cloze {

namespace {

/// Notes the runs of a stage that were kept as they are.
void add_kept(StudyReport& report, const Plan& plan) {
  int64_t kept = 0;
  std::string example;
  for (const auto& run : plan.runs)
    if (status_of(plan, run).kept && kept++ == 0) example = run.name();
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
  const auto tuning = read_task_tuning(search);
  if (!tuning || !tuning->lacks.empty()) {
    report.notes.push_back(tuning ? "the fine-tunings wait for " + tuning->lacks
                                  : concat("the search for the fine-tunings is not over: ", unsettled_words(search)));
    return;
  }
  add_kept(report, search);
  report.tables.push_back(tuning_table(*tuning));
  for (const auto& note : task_tuning_notes(*tuning)) report.notes.push_back(note);
  const auto* by = std::get_if<TaskMetric>(&report.by);
  const auto chosen = by ? chosen_words(*tuning, by->task) : "";
  if (!chosen.empty()) report.finetuning += "; " + chosen;
}

/// The floors of a metric beside that of its runs: of a task what its words tell.
std::vector<NamedFloor> floors_beside(const StudyMetric& metric, TaskFloors& floors,
                                      const std::vector<ArmOnTask>& arms) {
  const auto* of = std::get_if<TaskMetric>(&metric);
  if (!of) return {};
  const auto finished =
      std::ranges::find_if(arms, [&](const ArmOnTask& one) { return one.task == of->task && !one.metric.empty(); });
  if (finished == arms.end()) return {};
  const auto floor = floors.find(of->task, of->name.empty() ? finished->metric : of->name, Floor::words);
  return floor ? std::vector{*floor} : std::vector<NamedFloor>{};
}

void add_tasks(StudyReport& report, const Stages& stages) {
  if (!stages.tasks) return;
  const auto& tasks = stages.plans[*stages.tasks];
  report.finetuning = finetuning_words(tasks);
  add_task_tuning(report, stages);
  if (!tasks.waits_for.empty()) return;
  add_kept(report, tasks);
  const auto arms = arms_on_tasks(tasks);
  auto ranks = rank_table(arms);
  TaskFloors floors(tasks);
  add_floors(ranks, floors, arms);
  const auto columns = ranks.header.size();
  add_suite_columns(ranks, report);
  if (ranks.header.size() > columns) {
    ranks.title = "Tasks and suites";
    report.notes.emplace_back("mean and average rank of the table of tasks and suites are over the tasks");
  }
  report.tables.push_back(std::move(ranks));
  report.tables.push_back(finetuning_table(arms));
  for (const auto& note : task_notes(tasks, arms)) report.notes.push_back(note);
}

}  // namespace

void add_floors_of_words(StudyReport& report, const Stages& stages) {
  if (!stages.tasks || !stages.plans[*stages.tasks].waits_for.empty()) return;
  const auto& tasks = stages.plans[*stages.tasks];
  const auto arms = arms_on_tasks(tasks);
  TaskFloors floors(tasks);
  report.other_floors = floors_beside(report.by, floors, arms);
  for (const auto& metric : report.secondary) report.secondary_floors.push_back(floors_beside(metric, floors, arms));
}

void add_stages(StudyReport& report, const Stages& stages) {
  const auto& plan = stages.compared();
  add_tuning(report, stages);
  const size_t probes = plan.study.probe_head.share > 0, stage_count = plan.study.then.size() + 1;
  const std::span trained(&stages.plans[stages.comparison + 1 - stage_count - probes], stage_count);
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
                     .unit = traits_of(plan.metric).unit,
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

std::vector<Trial> read_trials(const Stages& stages) {
  std::vector<Trial> trials;
  for (size_t r = 0; r < stages.rungs.size(); ++r) {
    const auto& rung = stages.plans[stages.rungs[r]];
    for (const auto& arm : rung.arms) {
      const auto found = std::ranges::find(trials, arm.name, &Trial::name);
      std::vector<double> losses;
      Trial now{.name = arm.name, .keys = arm.keys, .rung = r};
      for (const auto& result : finished_results(rung, arm.name)) {
        losses.push_back(result.value);
        now.used += result;
      }
      if (losses.size() < rung.seeds.size()) continue;  // failed, or not done yet: what it had before counts
      now.loss = summarize(losses).mean;
      now.used = now.used / static_cast<double>(losses.size());
      if (found == trials.end())
        trials.push_back(now);
      else
        *found = now;
    }
  }
  const auto& by = stages.compared().metric;
  std::stable_sort(trials.begin(), trials.end(), [&](const Trial& a, const Trial& b) {
    return a.rung != b.rung ? a.rung > b.rung : is_better(a.loss, b.loss, by);
  });
  mark_frontier(trials, by);
  return trials;
}

namespace {

/// Whether FLOPs are known of all trials, so that they are what a trial costs; else tokens.
bool knows_flops(const std::vector<Trial>& trials) {
  return std::all_of(trials.begin(), trials.end(), [](const Trial& t) { return t.used.flops > 0; });
}

}  // namespace

void mark_frontier(std::vector<Trial>& trials, const StudyMetric& by) {
  const bool by_flops = knows_flops(trials);
  const auto cost = [&](const Trial& t) { return by_flops ? t.used.flops : t.used.tokens; };
  for (auto& trial : trials)
    trial.on_frontier = std::none_of(trials.begin(), trials.end(), [&](const Trial& other) {
      const bool no_worse = !is_better(trial.loss, other.loss, by) && cost(other) <= cost(trial);
      return no_worse && (is_better(other.loss, trial.loss, by) || cost(other) < cost(trial));
    });
}

std::string frontier_chart(const std::vector<Trial>& trials, const StudyMetric& by) {
  if (trials.empty()) return "";
  const bool by_flops = knows_flops(trials);
  ChartSeries frontier{.title = "frontier", .colour = 1}, best{.mark = ChartMark::points, .colour = 1},
      others{.mark = ChartMark::points, .colour = 2};
  Interval losses{trials.front().loss, trials.front().loss};
  double largest = 0;
  for (const auto& trial : trials) {
    const PlotPoint at{by_flops ? trial.used.flops : trial.used.tokens, trial.loss};
    auto& dots = trial.on_frontier ? best : others;
    dots.points.push_back(at);
    dots.hints.push_back(concat(trial.name, ", ", shortest(at.y)));
    if (trial.on_frontier) frontier.points.push_back(at);
    losses = {std::min(losses.low, at.y), std::max(losses.high, at.y)};
    largest = std::max(largest, at.x);
  }
  std::ranges::sort(frontier.points, {}, &PlotPoint::x);
  const char* cost = by_flops ? "FLOPs" : "tokens";
  return chart_html({.title = concat(value_words(by), " of trials by ", cost),
                     .x_label = cost,
                     .series = {frontier, best, others},
                     .x = nice_axis(0, largest, 5, true),
                     .y = nice_axis(losses.low, losses.high, 5, true)});
}

Table search_table(const std::vector<Trial>& trials, const StudyMetric& by) {
  constexpr auto number = ColumnKind::number;
  Table table{
      .title = "Trials",
      .header = {
          "trial", {"rung", number}, {value_words(by), number}, {"tokens", number}, {"FLOPs", number}, "frontier"}};
  if (trials.empty()) return table;
  table.picture = frontier_chart(trials, by);
  for (const auto& [key, value] : trials.front().keys) table.header.emplace_back(key, number);
  for (const auto& trial : trials) {
    auto& row = table.rows.emplace_back(std::vector<std::string>{
        trial.name, std::to_string(trial.rung + 1), fixed(trial.loss, 4),
        thousands(static_cast<uint64_t>(trial.used.tokens)), trial.used.flops > 0 ? digits(trial.used.flops, 3) : "",
        trial.on_frontier ? "yes" : ""});
    for (const auto& [key, value] : trial.keys) row.push_back(one_line(value));
  }
  return table;
}

std::vector<std::string> search_notes(const Stages& stages, const std::vector<Trial>& trials) {
  std::vector<std::string> notes;
  const auto& first = stages.plans[stages.rungs.front()];
  if (stages.rungs.size() > 1) {
    const auto& second = stages.plans[stages.rungs[1]];
    const bool continued = !second.runs.empty() && second.runs.front().kind == RunKind::continued;
    if (!second.runs.empty())
      notes.emplace_back(
          continued
              ? "the learning rate is constant, so that the runs of a rung go on from the checkpoints of the one before"
              : "the schedule spans the budget, so that every rung trains its trials anew: a run "
                "that is cut short would be judged in the middle of its schedule");
  }
  for (const size_t r : stages.rungs) {
    const auto& rung = stages.plans[r];
    if (!rung.waits_for.empty()) notes.push_back(concat(rung.stage, " waits for ", rung.waits_for));
    for (const auto& run : rung.runs) {
      const auto status = status_of(rung, run);
      const auto name = concat(rung.stage, ": run ", run.name());
      if (status.state != RunState::done)
        notes.push_back(concat(name, " is ", status.state, status.message.empty() ? "" : ": " + status.message));
      else if (!finished_result(rung, run))
        notes.push_back(name + " counts as failed: its held-out loss is not finite");
      if (status.kept) notes.push_back(concat(name, " ", kept_words));
    }
  }
  if (!trials.empty())
    notes.push_back(
        concat("the loss of the best of ", first.arms.size(),
               " trials is lower than new runs of it will be, because it was chosen by that loss; compare it "
               "with others in a study of arms"));
  return notes;
}

}  // namespace cloze
