#include "cli/finetunings.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/verbs.h"
#include "core/config/config.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"
#include "core/report/table.h"
#include "core/text.h"
#include "run/checkpoints/checksums.h"
#include "run/records/history.h"
#include "run/records/task_summary.h"
#include "run/run_files.h"
#include "study/execution/runner.h"
#include "study/execution/runs.h"
#include "study/report/task_report.h"
#include "tasks/figures/task_metric.h"
#include "tasks/rows/prepared_task.h"
#include "tasks/task.h"

namespace cloze {

namespace {

/// Writes the tables in the forms that papers and programs read; returns them as JSON, with their numbers.
nlohmann::json write_tables(const std::string& folder, const std::vector<Table>& tables,
                            const std::vector<std::string>& notes, const nlohmann::json& numbers) {
  std::string markdown, latex;
  auto all = nlohmann::json::array();
  for (const auto& table : tables) {
    markdown += to_markdown(table) + "\n";
    latex += to_latex(table) + "\n";
    all.push_back(to_json(table));
  }
  for (const auto& note : notes) markdown += "- " + escaped_markdown(note) + "\n";
  latex += to_latex(notes);
  nlohmann::json fields{{"tables", all}, {"notes", notes}};
  fields.update(numbers);
  write_atomic(folder + "/table.md", markdown);
  write_atomic(folder + "/table.tex", latex);
  write_atomic(folder + "/table.csv", to_csv(tables.front()));
  write_atomic(folder + "/table.json", json_text(fields, 1) + "\n");
  return fields;
}

}  // namespace

void finetune_table(const FinetuneTable& asked, const std::string& program) {
  const auto& [runs, terms, out, jobs, json] = asked;
  for (const auto& one : terms.set)
    require<ConfigError>(!one.starts_with("train.seed="), "--set ", one,
                         ": the fine-tunings have the seeds 1 to N of --seeds N; leave it out");
  // A task with mistakes is refused before the first run.
  for (const auto& task : terms.files)
    open_task(task, {.overrides = task_overrides(terms), .skip_bad = terms.skip_bad});
  const auto plan = task_plan(runs, terms, out);
  const auto progress = run_study(plan, {.program = program, .jobs = jobs, .only = {}});
  const auto arms = arms_on_tasks(plan);
  std::vector<Table> tables{rank_table(arms)};
  TaskFloors floors(plan);
  add_floors(tables.front(), floors, arms);
  const auto differences = differences_of_runs(plan);
  if (runs.size() > 1) tables.push_back(difference_table(differences, plan.runs.front().finetuning.arm));
  tables.push_back(finetuning_table(arms));
  auto notes = task_notes(plan, arms);
  if (runs.size() > 1) notes.push_back(difference_words(plan));
  const auto fields = write_tables(out, tables, notes, numbers_of(arms, differences));
  for (const auto& table : tables)
    if (!json) print_text(to_text(table) + "\n");
  for (const auto& note : notes) log_info("task", note);
  log_result("task", concat(out, "/table.md, .csv, .tex, .json: ", progress.done,
                            progress.done == 1 ? " run done, " : " runs done, ", progress.failed, " failed"));
  if (json) print_data(json_text(fields) + "\n");
  require_none_failed(progress);
}

namespace {

using nlohmann::json;

/// The best figure of a finished run on the valid part.
struct PointFigure {
  std::string metric{};
  std::optional<double> value{};
};

PointFigure figure_of_run(const std::string& run) {
  const auto task = read_task_summary(run);
  const auto best = value_at(task, "/best");
  return {.metric = string_at(task, "/metric"),
          .value = best.is_number() ? std::optional(best.get<double>()) : std::nullopt};
}

bool is_better(const PointFigure& one, const PointFigure& other) {
  if (!one.value || !other.value) return one.value.has_value();
  return is_error(one.metric) ? *one.value < *other.value : *one.value > *other.value;
}

/// The config of a task and the names of its labels.
std::string written(Task task) {
  task.config.labels.items
      .clear();  // of a task that was opened from a run they are there, also where its file has none
  return to_yaml(task.config) + listed(task.labels.names);
}

/// Refuses to go on with a run that began with other settings or weights, or with another task.
void check_same_point(const std::string& run, const RunConfig& config, const Task& task) {
  const auto before = read_resumed_config(run + "/run.yaml", {}, run);
  constexpr const char* refusal = "; name another folder with --run, or remove that one";
  for (const auto& changed : changed_keys(before, config)) {
    const auto is_in = [&](const char* section) { return changed.key.starts_with(section); };
    const bool is_setting = is_in("optimizer.") || is_in("schedule.") || is_in("train.") || is_in("objectives.") ||
                            is_in("freeze.") || is_in("init.") || changed.key == "task.metric";
    require<ConfigError>(!is_setting || (may_change(changed.key) && !is_in("train.budget.")), run,
                         ": is a run of another grid (", to_text(changed), ")", refusal);
  }
  const auto rows = run + "/" + task_folder;
  require<ConfigError>(written(open_prepared_task(rows).task) == written(task), run,
                       ": is a run of another grid, whose task file was another", refusal);
  require<ConfigError>(has_items_of(rows, task), run, ": is a run of another grid, whose items were others", refusal);
  const auto began_with = string_at(parse_json(read_text(run + "/init.json")), "/weights");
  require<ConfigError>(began_with == weights_fingerprint(config.init.from), run,
                       ": is not known to begin with the weights that ", config.init.from, " has now", refusal);
}

}  // namespace

RecipePoint best_of_grid(
    const std::vector<RecipePoint>& points, const std::string& folder, const Task& task,
    const std::function<RunConfig(const RecipePoint& point)>& config_of,
    const std::function<void(const RecipePoint& point, const std::string& run, bool resume)>& make) {
  const RecipePoint* best = nullptr;
  PointFigure best_figure;
  for (const auto& point : points) {
    const auto run = folder + "/" + point.name;
    const bool resume = run_folder(run) == RunFolder::saved;
    if (resume) check_same_point(run, config_of(point), task);
    if (!std::filesystem::exists(run + "/summary.json")) make(point, run, resume);
    const auto figure = figure_of_run(run);
    log_info("task", concat(point.name, ": ", figure.metric, " ", figure.value ? digits(*figure.value, 4) : "undefined",
                            " on the valid part"));
    if (best && !is_better(figure, best_figure)) continue;
    best = &point;
    best_figure = figure;
  }
  require<ConfigError>(best_figure.value.has_value(), folder, ": no run has a ", best_figure.metric,
                       " on the valid part; name another figure with --set task.metric");
  return *best;
}

}  // namespace cloze
