// The verb `evaluate` for fine-tuned runs, and `predict`.
#include "cli/engine/task_runs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/engine/parts.h"
#include "cli/engine/prediction_output.h"
#include "core/json.h"
#include "core/scratch_folder.h"
#include "models/backbone_config.h"
#include "run/load_config.h"
#include "run/moved.h"
#include "tasks/figures_output.h"
#include "tasks/floors.h"
#include "tasks/inspect_task.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t interval_resamples = 1000;
constexpr size_t window_items = 4096;  // that are sorted by length together

std::string tables_text(const std::vector<Table>& tables) {
  std::string text;
  for (const auto& table : tables) text += (text.empty() ? "" : "\n") + to_text(table);
  return text;
}

/// Refuses options of `evaluate` that are of held-out losses and of suites.
void check_task_options(const EvaluateCommand& c) {
  const auto refuse = [&](bool is_given, const char* option) {
    require<ConfigError>(!is_given, c.runs[0], ": is fine-tuned on a task, whose test part it is judged on; leave out ",
                         option);
  };
  refuse(!c.text.empty(), "--text");
  refuse(!c.tokens.empty(), "--tokens");
  refuse(!c.objectives.empty(), "--objective");
  refuse(!c.set.empty(), "--set");
  refuse(c.generate, "--generate");
  refuse(c.sequences > 0, "--sequences");
  refuse(c.all_checkpoints, "--all-checkpoints");
  for (const auto& run : c.runs)
    require<ConfigError>(is_fine_tuned(run), run, ": is not fine-tuned, and ", c.runs[0],
                         " is; evaluate them by commands of their own");
}

/// A run judged on its test part.
struct JudgedRun {
  TaskRun opened{};
  PreparedPart test{};
  JudgedPart judged{};
};

JudgedRun judge_run(const std::string& path, CheckpointChoice choice) {
  JudgedRun found{.opened = open_task_run(path, choice)};
  auto& [opened, test, judged] = found;
  test = read_prepared_part(opened.folder, "test");
  judged = judge_part(*opened.run.network, opened.task, test, interval_resamples);
  const auto train = read_prepared_part(opened.folder, "train");
  add_floor(opened.task.task.config.kind, Floor::constant, train.items, test.items, opened.task.task.labels, {},
            judged.figures);
  return found;
}

std::vector<TaskPrediction> plain(const std::vector<ItemPrediction>& predictions) {
  std::vector<TaskPrediction> all;
  for (const auto& one : predictions) all.push_back(one.prediction);
  return all;
}

/// The difference of two runs of one task; none for others.
std::optional<PairedFigures> difference_of(const std::vector<JudgedRun>& runs) {
  if (runs.size() != 2) return std::nullopt;
  const auto& [first, second] = std::tie(runs[0], runs[1]);
  const auto ids = [](const JudgedRun& one) {
    std::vector<std::string> all;
    for (const auto& item : one.test.items) all.push_back(item.id + '\n' + item.text + '\n' + item.second);
    return all;
  };
  const auto &a = first.opened.task.task, &b = second.opened.task.task;
  if (a.config.kind != b.config.kind || a.labels.names != b.labels.names || ids(first) != ids(second))
    return std::nullopt;
  return compare_predictions(a.config.kind, first.test.items, a.labels, plain(first.judged.predictions),
                             plain(second.judged.predictions));
}

}  // namespace

bool is_fine_tuned(const std::string& path) {
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return false;
  const auto folder =
      fs::exists(path + "/run.yaml", unknown) ? path : fs::path(located_step(path)).parent_path().string();
  if (!fs::exists(folder + "/run.yaml", unknown)) return false;
  const auto* name = ConfigTree::load_alone(folder + "/run.yaml").find("task.name");
  return name && !name->text.empty();
}

TaskRun open_task_run(const std::string& path, CheckpointChoice choice) {
  TaskRun found{.run = open_chosen(path, choice)};
  const auto& config = found.run.config;
  require<ConfigError>(!config.task.name.empty(), path,
                       ": is not fine-tuned on a task; do that first with `cloze finetune ", path, " TASK.yaml`");
  found.folder = tokens_of_run(found.run.folder, config.data.tokens);
  found.task = judged_task(found.folder, config.objectives, found.run.state.no_answer_threshold);
  return found;
}

int evaluate_tasks(const EvaluateCommand& c) {
  check_task_options(c);
  std::vector<JudgedRun> runs;
  for (const auto& path : c.runs) {
    runs.push_back(judge_run(path, c.checkpoint));
    const auto& one = runs.back();
    const auto& name = one.opened.run.config.task.name;
    if (c.json) {
      auto found = to_json(name, one.judged.figures);
      found["run"] = path;
      found["notes"] = one.opened.task.task.notes;
      print_data(json_text(found) + "\n");
      continue;
    }
    print_text(words(path, ", test part of ", name, "\n\n", tables_text(tables_of(name, one.judged.figures)), "\n"));
    for (const auto& note : one.opened.task.task.notes) log_info("task", note);
  }
  const auto difference = difference_of(runs);
  if (!difference) return 0;
  if (c.json)
    print_data(json_text(to_json(*difference)) + "\n");
  else
    print_text(words("\n", c.runs[0], " less ", c.runs[1], "\n\n", to_text(table_of(*difference))));
  return 0;
}

namespace {

/// Standard input as a file whose name ends as that of the task's test part, which says how it is read.
std::string spooled_items(const Task& task, const ScratchFolder& scratch) {
  auto name = fs::path(task.test.file).filename();
  for (const auto* packed : {".gz", ".xz"})
    if (name.extension() == packed) name.replace_extension();
  const auto path = (fs::path(scratch.path()) / ("input" + name.extension().string())).string();
  std::ofstream out(path, std::ios::binary);
  out << std::cin.rdbuf();
  return path;
}

bool has_gold(const TaskItem& item) { return !std::holds_alternative<NoGold>(item.gold); }

/// Predicts the items of one window after another.
class Predictor {
 public:
  Predictor(TaskRun& opened, PredictionOutput& output)
      : opened_(opened),
        output_(output),
        maker_(opened.run.tokenizer, framing_of(opened.run.tokenizer, opened.run.config.model),
               row_options(opened.task.task.config, opened.task.task.labels)) {}

  void predict(std::vector<TaskItem>& window) {
    std::vector<TaskRow> rows;
    for (size_t i = 0; i < window.size(); ++i) maker_.add(window[i], static_cast<int64_t>(i), rows, counts_);
    auto found = predict_items(*opened_.run.network, opened_.task, window, rows);
    for (size_t i = 0; i < window.size(); ++i) output_.add(found[i], window[i]);
    output_.flush();
    count_ += window.size();
    judge_later(window, found);
  }

  uint64_t count() const { return count_; }
  const RowCounts& counts() const { return counts_; }
  /// Figures, where every item has a label.
  std::optional<TaskFigures> figures() const {
    if (!are_labelled_ || items_.empty()) return std::nullopt;
    return figures_of_predictions(opened_.task, items_, predictions_, interval_resamples);
  }

 private:
  /// Keeps what figures are made of, as long as there may be some.
  void judge_later(std::vector<TaskItem>& window, std::vector<ItemPrediction>& found) {
    are_labelled_ = are_labelled_ && std::all_of(window.begin(), window.end(), has_gold);
    if (!are_labelled_) {
      items_.clear();
      predictions_.clear();
      return;
    }
    std::move(window.begin(), window.end(), std::back_inserter(items_));
    std::move(found.begin(), found.end(), std::back_inserter(predictions_));
  }

  TaskRun& opened_;
  PredictionOutput& output_;
  TaskRowMaker maker_;
  RowCounts counts_{};
  uint64_t count_ = 0;
  bool are_labelled_ = true;
  std::vector<TaskItem> items_{};
  std::vector<ItemPrediction> predictions_{};
};

}  // namespace

int run_predict(const PredictCommand& c) {
  auto opened = open_task_run(c.run, c.checkpoint);
  require_tokenizer(opened.run);
  const ScratchFolder scratch;
  const auto& task = opened.task.task;
  const auto file = c.file == "-" ? spooled_items(task, scratch) : fs::absolute(c.file).string();
  PredictionOutput output(c, file, task);
  Predictor predictor(opened, output);
  read_items_in_windows(task, file, window_items, [&](auto& window) { predictor.predict(window); });
  output.finish();
  if (const auto note = cut_note("items", predictor.counts()); !note.empty()) log_info("task", note);
  if (!c.out.empty()) log_result("predict", words(thousands(predictor.count()), " predictions -> ", c.out));
  if (const auto figures = predictor.figures())
    log_info("task", words("the items have labels:\n", tables_text(tables_of(task.config.task, *figures))));
  return 0;
}

}  // namespace cloze
