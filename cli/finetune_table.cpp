#include "cli/finetune_table.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"
#include "core/table.h"
#include "core/text.h"
#include "study/runner.h"
#include "study/task_floors.h"
#include "study/task_report.h"
#include "tasks/task.h"

namespace cloze {

namespace {

/// Writes the tables in the forms that papers and programs read; returns them as JSON.
nlohmann::json write_tables(const std::string& folder, const std::vector<Table>& tables,
                            const std::vector<std::string>& notes) {
  std::string markdown, latex;
  auto all = nlohmann::json::array();
  for (const auto& table : tables) {
    markdown += to_markdown(table) + "\n";
    latex += to_latex(table) + "\n";
    all.push_back(to_json(table));
  }
  for (const auto& note : notes) markdown += "- " + note + "\n";
  const nlohmann::json fields{{"tables", all}, {"notes", notes}};
  write_atomic(folder + "/table.md", markdown);
  write_atomic(folder + "/table.tex", latex);
  write_atomic(folder + "/table.csv", to_csv(tables.front()));
  write_atomic(folder + "/table.json", json_text(fields, 1) + "\n");
  return fields;
}

}  // namespace

int finetune_table(const FinetuneTable& asked, const std::string& program) {
  const auto& [runs, terms, out, jobs, json] = asked;
  for (const auto& one : terms.set)
    require<ConfigError>(!one.starts_with("train.seed="), "--set ", one,
                         ": the fine-tunings have the seeds 1 to N of --seeds N; leave it out");
  // A task with mistakes is refused before the first run.
  for (const auto& task : terms.files)
    open_task(task, {.overrides = task_overrides(terms), .skip_bad = terms.skip_bad});
  const auto plan = task_plan(runs, terms, out);
  const auto progress = run_study(plan, {.program = program, .jobs = jobs, .only = {}});
  const auto found = arms_on_tasks(plan);
  std::vector<Table> tables{rank_table(found)};
  add_floors(tables.front(), plan, found);
  if (runs.size() > 1) tables.push_back(difference_table(plan));
  tables.push_back(finetuning_table(found));
  const auto notes = task_notes(plan, found);
  const auto fields = write_tables(out, tables, notes);
  for (const auto& table : tables)
    if (!json) print_text(to_text(table) + "\n");
  for (const auto& note : notes) log_info("task", note);
  log_result("task",
             concat(out, "/table.md, .csv, .tex, .json: ", progress.done, " runs done, ", progress.failed, " failed"));
  if (json) print_data(json_text(fields) + "\n");
  return progress.failed > 0 ? 1 : 0;
}

}  // namespace cloze
