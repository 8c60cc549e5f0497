#include "evaluation/tasks/task_runs.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/contains.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"
#include "core/text.h"
#include "data/store/token_store.h"
#include "finetune/chosen.h"
#include "run/config/load_config.h"
#include "run/moved.h"
#include "run/records/provenance.h"
#include "run/records/task_summary.h"
#include "tasks/scores/benchmark_average.h"
#include "tasks/scores/scores_output.h"
#include "tasks/scores/task_metric.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The folder with the rows of a fine-tuned run. Throws DataError for other rows than it was trained on.
std::string rows_of_run(const std::string& run, const RunConfig& config) {
  const auto rows = tokens_of_run(run, config.data.tokens);
  const bool has_provenance = fs::exists(run + "/provenance.json");
  const auto trained_on = has_provenance ? recorded_data(run) : config.task.fingerprint;
  require<DataError>(trained_on.empty() || open_prepared_task(rows).fingerprint == trained_on, rows,
                     ": has other rows than those that ", run,
                     " was fine-tuned on; restore it, or fine-tune again in another folder");
  return rows;
}

/// A run that is fine-tuned on a task, before its weights are read.
struct TaskOfRun {
  std::string run{};     ///< as the user names it
  std::string origin{};  ///< the pretrained run
  Task task{};           ///< without items
  PreparedSplit test{};
};

TaskOfRun task_of_run(const std::string& path) {
  const auto run = run_directory_of(path);
  const auto config = decode<RunConfig>(load_run_config(run + "/run.yaml"));
  const auto tokens = rows_of_run(run, config);
  return {.run = path,
          .origin = config.init.from,
          .task = judged_task(tokens, config.objectives).task,
          .test = read_prepared_split(tokens, "test")};
}

/// The benchmark that all tasks are of; none: there is none, or a single task.
std::optional<Benchmark> benchmark_of(const std::vector<TaskOfRun>& runs) {
  const auto& first = runs.front();
  const auto is_first = [&](const TaskOfRun& one) { return one.task.config.task == first.task.config.task; };
  if (std::ranges::all_of(runs, is_first)) return std::nullopt;
  for (const auto benchmark : {Benchmark::glue, Benchmark::superglue})
    if (std::ranges::all_of(runs, [&](const TaskOfRun& one) { return is_task_of(benchmark, one.task.config.task); }))
      return benchmark;
  return std::nullopt;
}

/// Throws ConfigError for two runs that have nothing to compare: other tasks, other labels, other test parts.
void check_comparable(const TaskOfRun& first, const TaskOfRun& second) {
  const auto &a = first.task, &b = second.task;
  const auto refuse = [&](bool is_refused, const auto&... why) {
    require<ConfigError>(!is_refused, first.run, " and ", second.run, ": ", why...,
                         "; evaluate them by commands of their own");
  };
  refuse(a.config.task != b.config.task, "they are fine-tuned on other tasks, ", a.config.task, " and ", b.config.task);
  refuse(a.config.kind != b.config.kind, "their tasks ", a.config.task, " are of the kinds ", name_of(a.config.kind),
         " and ", name_of(b.config.kind));
  refuse(a.labels.names != b.labels.names, "the labels of ", a.config.task, " are ", listed(a.labels.names), " and ",
         listed(b.labels.names));
  const auto &items = first.test.items, &others = second.test.items;
  refuse(items.size() != others.size(), "their test parts of ", a.config.task, " have ", items.size(), " and ",
         others.size(), " items");
  const auto at = std::ranges::mismatch(items, others, asks_the_same).in1;
  refuse(at != items.end(), "their test parts of ", a.config.task, " differ, first in item '",
         at == items.end() ? "" : at->id, "'");
}

/// The test part of a run, judged.
JudgedSplit judge_run(const TaskOfRun& of, CheckpointChoice choice) {
  const auto opened = open_task_run(of.run, choice);
  auto judged = judge_split(*opened.run.network, opened.task, of.test, interval_resamples);
  require_finite(judged.predictions, of.run);
  add_constant_floor(opened.task, of.test.items, judged.scores);
  return judged;
}

void print_difference(const RunSelection& c, const TaskOfRun& task, const std::vector<JudgedSplit>& judged) {
  const auto difference = compare_predictions(task.task.config.kind, task.test.items, task.task.labels,
                                              plain_predictions(judged[0].predictions),
                                              plain_predictions(judged[1].predictions), metric_options(task.task));
  if (c.json)
    print_data(json_text(to_json(difference)) + "\n");
  else
    print_text(concat("\n", c.runs[0], " less ", c.runs[1], "\n\n", to_text(table_of(difference))));
}

/// The average of a benchmark over runs; nothing where none of its tasks has all its scores, or where the runs do not
/// come from one pretrained run.
void print_average(const RunSelection& c, Benchmark benchmark, const std::vector<TaskOfRun>& runs,
                   const std::vector<JudgedSplit>& judged) {
  const auto& origin = runs.front().origin;
  if (std::ranges::any_of(runs, [&](const TaskOfRun& one) { return one.origin != origin; }))
    return log_info("task",
                    concat("no average of ", name_of(benchmark), ": the runs come from several pretrained runs"));
  std::vector<TaskValue> values;
  for (size_t i = 0; i < runs.size(); ++i)
    for (const auto& score : judged[i].scores.scores)
      if (score.is_defined())
        values.push_back({.task = runs[i].task.config.task, .metric = score.metric, .value = score.value});
  const auto average = average_of(benchmark, values);
  if (!average.value) return;
  if (c.json) {
    print_data(json_text(json{{"benchmark", name_of(benchmark)},
                              {"average", *average.value},
                              {"tasks", average.tasks},
                              {"missing", average.missing}}) +
               "\n");
    return;
  }
  const auto missing = average.missing.empty() ? "" : concat("; without ", listed(average.missing));
  print_text(concat("\n", name_of(benchmark), " average of ", origin, ": ", fixed(*average.value, 4), " over ",
                    average.tasks, average.tasks == 1 ? " task" : " tasks", missing, "\n"));
}

}  // namespace

std::string tables_text(const std::string& task, const TaskScores& scores) {
  std::string text;
  for (const auto& table : tables_of(task, scores)) text += (text.empty() ? "" : "\n") + to_text(table);
  return text;
}

void require_finite(const std::vector<ItemPrediction>& predictions, const std::string& run) {
  require<DataError>(are_finite(predictions), run,
                     ": its predictions are not finite, as those of a training that diverged; name an earlier step, or "
                     "fine-tune again in another folder with a lower optimizer.learning_rate");
}

bool is_fine_tuned(const std::string& path) {
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return false;
  const auto folder =
      fs::exists(path + "/run.yaml", unknown) ? path : fs::path(located_step(path)).parent_path().string();
  if (!fs::exists(folder + "/run.yaml", unknown)) return false;
  const auto* name = ConfigTree::load_alone(folder + "/run.yaml").find("task.name");
  return name && !name->text.empty();
}

TaskRun open_task_run(const std::string& path, CheckpointChoice choice, const std::string& task) {
  TaskRun opened{.run = open_chosen(path, choice)};
  const auto& config = opened.run.config;
  const bool is_tuned = !config.task.name.empty();
  require<ConfigError>(task.empty() || !is_tuned, path, ": is fine-tuned on ", config.task.name,
                       ", which it predicts; leave out --task");
  if (!task.empty()) {
    opened.task = task_of_head(task, config.objectives);
    opened.task.tokenizer = opened.run.tokenizer;
    return opened;
  }
  require<ConfigError>(is_tuned, path, ": is not fine-tuned on a task; do that first with `cloze finetune ", path,
                       " TASK.yaml`, or name the task that its head came with by --task");
  opened.folder = rows_of_run(opened.run.folder, config);
  opened.task = judged_task(opened.folder, config.objectives, chosen_on_valid(opened.run.state));
  if (const auto* probes = probes_of(*opened.run.network); probes && probes->layers().size() > 1)
    log_info("task", concat(path, ": predictions are those of layer ", probes->layers()[probes->chosen()],
                            ", the best one on the valid part of ", probes->layers().size()));
  return opened;
}

void verify_task(const std::string& run) {
  const auto rows = rows_of_run(run, decode<RunConfig>(load_run_config(run + "/run.yaml")));
  for (const auto* part : {"train", "valid", "test"}) {
    TokenStore(rows, part).verify();
    read_prepared_split(rows, part);
  }
  log_result("verify", concat(rows, ": rows and items are those that the run was fine-tuned on"));
  if (!fs::exists(run + "/summary.json")) return;        // it has not ended
  if (!read_task_summary(run).contains("xxh3")) return;  // of an earlier version
  log_result("verify", concat(run, ": figures and predictions of the task are those that the run wrote"));
}

void evaluate_tasks(const RunSelection& c) {
  const auto other = std::ranges::find_if_not(c.runs, is_fine_tuned);
  require<ConfigError>(other == c.runs.end(), other == c.runs.end() ? "" : *other,
                       ": is not fine-tuned on a task; `cloze evaluate losses RUN` computes the losses of such runs");
  std::vector<TaskOfRun> runs;
  for (const auto& path : c.runs) runs.push_back(task_of_run(path));
  const auto benchmark = benchmark_of(runs);
  if (runs.size() == 2 && !benchmark) check_comparable(runs[0], runs[1]);
  std::vector<JudgedSplit> judged;
  std::vector<std::string> said;
  for (const auto& one : runs) {
    const auto& [path, origin, task, test] = one;
    const auto& scores = judged.emplace_back(judge_run(one, c.checkpoint)).scores;
    const auto& name = task.config.task;
    if (c.json) {
      auto document = to_json(name, scores);
      document["run"] = path;
      document["notes"] = task.notes;
      print_data(json_text(document) + "\n");
      continue;
    }
    print_text(concat(path, ", test part of ", name, "\n\n", tables_text(name, scores), "\n"));
    for (const auto& note : task.notes)
      if (!contains(said, note)) log_info("task", said.emplace_back(note));
  }
  if (benchmark)
    print_average(c, *benchmark, runs, judged);
  else if (runs.size() == 2)
    print_difference(c, runs[0], judged);
}

}  // namespace cloze
