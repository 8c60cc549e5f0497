#include "study/search/stages.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "core/interrupt.h"
#include "core/log.h"
#include "core/spelling.h"
#include "run/config/evaluation_protocol.h"
#include "study/execution/runs.h"
#include "study/search/task_plan.h"
#include "study/search/tuning.h"

namespace cloze {

namespace {

/// The run that trains a new head for the metric on the backbone of a trained one.
PlannedRun probe_of(const Plan& trained, const PlannedRun& run) {
  const auto& study = trained.study;
  auto probe = run;
  probe.kind = RunKind::probe;
  probe.inputs = {run.folder};
  probe.folder = trained.folder + "/probe" + run.folder.substr(trained.folder.size());
  auto& config = probe.config;
  config.init = {.from = {}, .probe = true};
  config.objectives = row_objectives(parse_objective(study.metric.objective));
  config.evaluation.objectives = {parse_objective(study.metric.objective)};
  config.optimizer = {};
  config.optimizer.learning_rate = study.probe_head.learning_rate;
  config.schedule = {};
  const double fraction = study.probe_head.share;
  config.train.budget = scaled(run.config.train.budget, fraction / (1 - fraction));
  probe.fingerprint = fingerprint_after(fingerprint_of(config), run.fingerprint);
  config.init.from = run.folder;
  return probe;
}

Plan probe_plan(const Plan& trained) {
  Plan plan = trained;
  plan.folder += "/probe";
  plan.stage = trained.stage + ", probes";
  plan.runs.clear();
  std::string mistakes;
  for (const auto& run : trained.runs) {
    auto probe = probe_of(trained, run);
    check_budget(probe.config, concat("probe_head.share ", shortest(plan.study.probe_head.share), " of the budget"));
    try {
      if (run.seed == trained.seeds.front()) validate(probe.config);
    } catch (const ConfigError& e) {
      mistakes += concat(mistakes.empty() ? "" : "\n", "arm '", run.arm, "' cannot have a probe_head for ",
                         plan.study.metric.objective, ": ", e.what());
    }
    plan.runs.push_back(std::move(probe));
  }
  if (!mistakes.empty()) throw ConfigError(mistakes);
  return plan;
}

/// Names of `only` that this plan has.
std::vector<std::string> names_in(const Plan& plan, const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const auto& name : only)
    if (std::any_of(plan.runs.begin(), plan.runs.end(),
                    [&](const PlannedRun& run) { return name == run.arm || name == run.name(); }))
      names.push_back(name);
  return names;
}

/// Throws ConfigError for a name that no stage has.
void check_names(const Stages& stages, const std::vector<std::string>& only) {
  for (const auto& name : only) {
    const bool known = std::any_of(stages.plans.begin(), stages.plans.end(),
                                   [&](const Plan& plan) { return !names_in(plan, {name}).empty(); });
    if (!known) selected_runs(stages.compared(), {name});  // throws, with the nearest name
  }
}

/// Adds the fine-tunings of the runs that are compared, after the search for what they have, if there is one.
void add_finetunings(Stages& stages) {
  std::optional<Tuning> tuning;
  std::string waits_for;
  if (!stages.compared().study.tasks.tune.items.empty()) {
    auto search = task_tuning_plan(stages.compared());
    tuning = read_task_tuning(search);
    waits_for = tuning ? tuning->lacks : search.stage;
    stages.plans.push_back(std::move(search));
    stages.task_tuning = stages.plans.size() - 1;
  }
  auto tasks = task_plan(stages.compared(), tuning ? &*tuning : nullptr);
  if (!waits_for.empty()) tasks.waits_for = waits_for;
  stages.plans.push_back(std::move(tasks));
  stages.tasks = stages.plans.size() - 1;
}

/// The arms of a study with what the search for their values has found, whose plan is added, and what they wait for.
std::pair<std::vector<Arm>, std::string> tuned_arms(Stages& stages, const StudyConfig& study, const std::string& file,
                                                    const std::string& folder) {
  auto arms = arms_of(study);
  if (study.tune.items.empty()) return {arms, ""};
  stages.tuning = add_stage(stages, tuning_plan(study, file, folder, arms));
  const auto tuning = read_tuning(stages.plans[*stages.tuning], arms);
  if (!tuning || !tuning->lacks.empty()) return {arms, tuning ? tuning->lacks : "tuning"};
  for (auto& arm : arms) arm.tuned = tuning->best_keys(arm.name);
  return {arms, ""};
}

/// The stages of a study of arms.
Stages stages_of_arms(const StudyConfig& study, const std::string& file, const std::string& folder) {
  Stages stages;
  const auto [arms, waits_for] = tuned_arms(stages, study, file, folder);
  const auto part = stages.tuning ? HeldOutPart::verdict : HeldOutPart::whole;
  const auto plan = plan_of({.file = file,
                             .root = folder,
                             .folder = folder,
                             .stage = "runs",
                             .waits_for = waits_for,
                             .study = study,
                             .arms = arms,
                             .seeds = seeds_of(study.seeds),
                             .part = part});
  const auto split = study.split ? std::optional(split_plan(plan)) : std::nullopt;
  stages.comparison = add_stage(stages, plan);
  for (size_t later = 0; later < study.then.size(); ++later)
    stages.comparison = add_stage(stages, later_plan(stages.compared(), later));
  if (split) stages.split = add_stage(stages, *split);
  if (!study.tasks.files.empty()) add_finetunings(stages);
  return stages;
}

/// Whether the results of a stage decide what later ones are.
bool decides(const Stages& stages, size_t stage) {
  return (stages.tuning && stage <= *stages.tuning) || stages.task_tuning == stage ||
         (!stages.rungs.empty() && stage < stages.rungs.back());
}

/// Whether a process works on a run of a stage before this one.
bool is_running_before(const Stages& stages, size_t stage) {
  return std::any_of(stages.plans.begin(), stages.plans.begin() + static_cast<int64_t>(stage), [](const Plan& plan) {
    return std::any_of(plan.runs.begin(), plan.runs.end(),
                       [&](const PlannedRun& run) { return status_of(plan, run).state == RunState::running; });
  });
}

/// Waits while other processes work on the stages before this one; false where none does.
bool waited_for_others(const Stages& stages, size_t stage) {
  bool waited = false;
  for (; !interrupted && is_running_before(stages, stage); waited = true)
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return waited;
}

/// The first stage before this one that has runs to do, else the one just before.
const Plan& unsettled_before(const Stages& stages, size_t stage) {
  const auto end = stages.plans.begin() + static_cast<int64_t>(stage);
  const auto found = std::find_if(stages.plans.begin(), end, [](const Plan& plan) { return !is_settled(plan); });
  return found == end ? stages.plans[stage - 1] : *found;
}

/// What that stage has to do, which nothing keeps from being done; empty: nothing.
std::string left_before(const Stages& stages, size_t stage) {
  const auto& before = unsettled_before(stages, stage);
  return before.waits_for.empty() ? unsettled_words(before) : "";
}

StudyProgress sum_of(const std::map<size_t, StudyProgress>& stages) {
  StudyProgress all;
  for (const auto& [stage, one] : stages) {
    all.done += one.done;
    all.failed += one.failed;
    all.elsewhere += one.elsewhere;
    all.waiting += one.waiting;
    if (all.failure.empty()) all.failure = one.failure;
  }
  return all;
}

/// Says what a stage waits for, of which this is left. Throws DataError where nothing is, and it waits all the same.
void answer_waiting(const Stages& stages, size_t stage, const std::string& left, bool refuses) {
  const auto& plan = stages.plans[stage];
  require<DataError>(!refuses || !left.empty(), unsettled_before(stages, stage).folder, ": ", plan.stage,
                     " cannot start without ", plan.waits_for);
  log_info("study", concat(plan.stage, ": waits for ", plan.waits_for, left.empty() ? "" : ", of which " + left));
}

}  // namespace

Stages make_stages(const std::string& file, const std::string& named_folder) {
  const auto study = read_study(file);
  const auto folder = study_folder(study, named_folder);
  return study.space.items.empty() ? stages_of_arms(study, file, folder) : search_stages(study, file, folder);
}

const PlannedRun& Stages::input_of(const PlannedRun& run) const {
  for (const auto& plan : plans)
    for (const auto& one : plan.runs)
      if (one.folder == run.source()) return one;
  fail<Error>(run.folder, ": goes on from ", run.source(), ", which is no run of the study");
}

size_t add_stage(Stages& stages, Plan plan) {
  stages.plans.push_back(std::move(plan));
  if (stages.plans.back().study.probe_head.share > 0) stages.plans.push_back(probe_plan(stages.plans.back()));
  return stages.plans.size() - 1;
}

bool is_settled(const Plan& plan) { return plan.waits_for.empty() && unsettled_words(plan).empty(); }

std::string unsettled_words(const Plan& plan) {
  int64_t left = 0;
  std::string example;
  for (const auto& run : plan.runs) {
    const auto status = status_of(plan, run);
    if (status.state == RunState::done || failed_by_itself(status)) continue;
    if (left++ == 0) example = concat(run.name(), " (", status.state, ")");
  }
  return left == 0 ? "" : concat(left, " of ", plan.runs.size(), " runs are not done, such as ", example);
}

std::string new_try(const std::string& what, const PlannedRun& example) {
  const bool begun = example.source().empty() || std::filesystem::exists(log_path(example));
  return concat("a new try of ", what, ", whose runs have all failed (see ",
                begun ? log_path(example) : example.source() + ".log", "; try again with --only ",
                shell_word(example.name()), ")");
}

StudyProgress run_stages(const std::string& file, const std::string& folder, const RunnerOptions& options) {
  auto stages = make_stages(file, folder);
  check_names(stages, options.only);
  std::map<size_t, StudyProgress> progress;  // of each stage, as it was left the last time
  std::string left;                          // when the last stage was left
  for (size_t i = 0; i < stages.plans.size(); ++i) {
    if (i > 0) stages = make_stages(file, folder);  // with what the stages before have found
    if (!options.only.empty() && names_in(stages.plans[i], options.only).empty()) continue;
    if (!stages.plans[i].waits_for.empty()) {
      const bool waited = waited_for_others(stages, i);
      // Others work meanwhile, and may leave between two runs of theirs what is free to do here.
      const auto left_now = left_before(stages, i);
      stages = make_stages(file, folder);
      const bool may_go_on = waited || (options.only.empty() && left_now != left);
      if (!may_go_on && !stages.plans.at(i).waits_for.empty()) {
        answer_waiting(stages, i, left_now, options.only.empty());
        break;
      }
      i = 0;  // what others have left may need more of every stage
    }
    const auto& plan = stages.plans[i];
    auto each = options;
    each.only = names_in(plan, options.only);
    if (each.only.empty() && (!options.only.empty() || (decides(stages, i) && is_settled(plan)))) continue;
    if (stages.plans.size() > 1) log_info("study", concat(plan.stage, ": ", plan.runs.size(), " runs"));
    progress[i] = run_study(plan, each);
    left = left_before(stages, i + 1);
  }
  return sum_of(progress);
}

}  // namespace cloze
