#include "evaluation/tasks/predict.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"
#include "core/shown_character.h"
#include "core/text.h"
#include "data/reading/line_reader.h"
#include "data/reading/table_reader.h"
#include "evaluation/tasks/item_source.h"
#include "evaluation/tasks/prediction_passes.h"
#include "models/backbone_config.h"
#include "tasks/scores/scores_output.h"
#include "tasks/scores/item_prediction.h"
#include "tasks/scores/task_metric.h"
#include "tasks/inspect_task.h"
#include "tasks/task.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

constexpr size_t window_items = 4096;  // that are sorted by length together

/// A name that no column has, of names with tabs between them: prediction, prediction_2, ...
std::string new_column(const std::string& names) {
  const auto columns = "\t" + names + "\t";
  std::string name = "prediction";
  for (int number = 2; columns.find("\t" + name + "\t") != columns.npos; ++number)
    name = "prediction_" + std::to_string(number);
  return name;
}

/// The words of a sentence with their tags, in which tabs and ends of lines are spaces: each has a line of its own.
std::string tag_lines(const ItemPrediction& prediction, const TaskItem& item, const TaskLabels& labels) {
  std::string lines;
  for (size_t w = 0; w < item.words.size(); ++w)
    lines += in_one_line(item.words[w]) + "\t" +
             in_one_line(labels.names.at(static_cast<size_t>(prediction.prediction.answer.labels.at(w)))) + "\n";
  return lines + "\n";
}

/// Writes one prediction after another, in the form that the ending of --out names:
/// - `.jsonl`, and with --json: a line of JSON each
/// - `.tsv`, and where nothing is asked for: the lines of a table with one cell more, or item and prediction;
///   of tagging always these, since an item is several lines
/// - `.csv`: the records of a CSV with one cell more, else item and prediction
/// - `.conll`: tags, `word<tab>tag` a line, with an empty line after each item
/// - `.json`: answers, an object {ID: answer} as SQuAD's programs read it
class PredictionOutput {
 public:
  /// `file`: of the items. Throws ConfigError for a form that the task's kind does not have.
  PredictionOutput(const PredictRequest& command, const std::string& file, const Task& task);

  /// `more`: keys of the line of JSON.
  void add(const ItemPrediction& prediction, const TaskItem& item, const nlohmann::ordered_json& more);
  /// Prints what was added, or writes it to the file that will be --out.
  void flush();
  /// Puts the file at its place. Throws Error with the system's reason.
  void finish();

  bool has_header = false;  ///< the table whose lines are repeated begins with a line of names

 private:
  enum class Form { json_lines, table, csv, columns, answers };
  static Form form_of(const PredictRequest& command);
  std::string cell(const std::string& text) const;
  /// Reads the next record of the table whose lines are repeated; false at the end.
  bool read_record();
  std::string table_line(const ItemPrediction& prediction, const TaskItem& item);

  const PredictRequest& command_;
  const Task& task_;
  Form form_;
  std::optional<LineReader> input_{};  ///< the table whose lines are repeated
  std::optional<TableRows> rows_{};    ///< its rows
  char separator_ = '\t';
  std::string record_{}, names_{};  ///< that was read last, as it stands; its cells with tabs between them
  uint64_t record_line_ = 0;        ///< where it begins
  bool is_first_ = true, has_written_header_ = false;
  std::string text_{};
  std::optional<StagedFolder> staged_{};  ///< has the file that will be --out
  std::ofstream out_{};
};

PredictionOutput::Form PredictionOutput::form_of(const PredictRequest& command) {
  if (command.json || command.out.ends_with(".jsonl")) return Form::json_lines;
  if (command.out.ends_with(".csv")) return Form::csv;
  if (command.out.ends_with(".conll")) return Form::columns;
  return command.out.ends_with(".json") ? Form::answers : Form::table;
}

PredictionOutput::PredictionOutput(const PredictRequest& command, const std::string& file, const Task& task)
    : command_(command), task_(task), form_(form_of(command)) {
  const auto kind = task.config.kind;
  require<ConfigError>(form_ != Form::columns || kind->has_words, "--out ", command.out, ": the task is ", kind,
                       ", and a .conll has tags of words; name a .tsv or a .jsonl");
  require<ConfigError>(form_ != Form::answers || kind->has_answers, "--out ", command.out, ": the task is ", kind,
                       ", and a .json has answers, as SQuAD's files; name a .tsv or a .jsonl");
  if (!command.out.empty()) {
    staged_.emplace(command.out);
    out_.open(staged_->path() + "/predictions", std::ios::binary);
  }
  const bool is_table = form_ == Form::table || form_ == Form::csv;
  const bool is_alike = uncompressed_name(file).ends_with(form_ == Form::csv ? ".csv" : ".tsv");
  const bool repeats = is_table && !kind->has_words && is_alike;
  if (form_ == Form::csv) separator_ = ',';
  if (repeats) input_.emplace(file);
  if (repeats) rows_.emplace(input_->name, TableForm{});
  if (is_table && !repeats) text_ = concat("item", separator_, "prediction\n");
  if (form_ == Form::answers) text_ = "{";
}

std::string PredictionOutput::cell(const std::string& text) const {
  return form_ == Form::csv ? escaped_csv(in_one_line(text), separator_) : escaped_tsv(text);
}

bool PredictionOutput::read_record() {
  std::string_view line;
  if (!input_->next(line)) return false;
  record_line_ = input_->number;
  record_ = names_ = line;
  if (form_ != Form::csv) return true;
  while (!rows_->add(line, input_->number) && input_->next(line)) record_ += "\n" + std::string(line);
  separator_ = rows_->separator();
  names_.clear();
  for (const auto name : rows_->cells()) names_ += std::string(name) + "\t";
  return true;
}

std::string PredictionOutput::table_line(const ItemPrediction& prediction, const TaskItem& item) {
  std::string lines;
  while (input_ && record_line_ < item.line && read_record()) {
    if (!has_header || has_written_header_ || record_.empty()) continue;
    lines += record_ + separator_ + new_column(names_) + "\n";
    has_written_header_ = true;
  }
  const auto predicted = cell(task_.config.kind->spelled(prediction.prediction.answer, task_.labels));
  return lines + (input_ ? record_ : cell(item.id)) + separator_ + predicted + "\n";
}

void PredictionOutput::add(const ItemPrediction& prediction, const TaskItem& item, const nlohmann::ordered_json& more) {
  switch (form_) {
    case Form::json_lines: {
      auto line = task_.config.kind->json_of(prediction, item, task_.labels);
      line.update(more);
      text_ += json_text(line) + "\n";
      break;
    }
    case Form::table:
    case Form::csv:
      text_ += table_line(prediction, item);
      break;
    case Form::columns:
      text_ += tag_lines(prediction, item, task_.labels);
      break;
    case Form::answers:
      text_ += concat(is_first_ ? "" : ",\n", json_text(nlohmann::json(item.id)), ": ",
                      json_text(nlohmann::json(prediction.prediction.answer.text())));
      break;
  }
  is_first_ = false;
}

void PredictionOutput::flush() {
  if (staged_)
    out_ << text_;
  else
    print_data(text_);
  text_.clear();
}

void PredictionOutput::finish() {
  if (form_ == Form::answers) text_ += "}\n";
  flush();
  if (!staged_) return;
  out_.close();
  require(!out_.fail(), command_.out, ": cannot be written (", system_reason(), ")");
  std::error_code error;
  std::filesystem::rename(staged_->path() + "/predictions", command_.out, error);
  require(!error, command_.out, ": cannot be written (", error.message(), ")");
}

bool has_gold(const TaskItem& item) { return item.gold.is_known(); }

bool has_label(const TaskItem& item) { return !item.gold.labels.empty(); }

/// Predicts the items of a file, one window after another.
class Predictor {
 public:
  explicit Predictor(const PredictRequest& command)
      : command_(command),
        passes_(command),
        source_(passes_.task().task, command.file),
        output_(command, source_.file(), passes_.task().task) {}

  void run() {
    const auto read = source_.read(window_items, command_.skip_bad, [&](auto& window) { predict(window); });
    output_.finish();
    for (const auto& note : read.notes) log_info("task", note);
    for (const auto& note : passes_.notes()) log_info("task", note);
    if (!command_.out.empty()) log_result("predict", concat(thousands(count_), " predictions -> ", command_.out));
    say_scores();
    if (const auto said = passes_.said_of_sets(); !said.empty()) log_info("task", said);
  }

 private:
  void predict(TaskSplit& split) {
    auto& window = split.items;
    output_.has_header = !split.first_line_may_be_header;
    auto predictions = passes_.predict(window);
    std::vector<ItemPrediction> items;
    for (size_t i = 0; i < window.size(); ++i) {
      output_.add(predictions[i].item, window[i], passes_.json_of(predictions[i], window[i]));
      items.push_back(std::move(predictions[i].item));
    }
    output_.flush();
    count_ += window.size();
    judge_later(window, items);
  }

  /// Says the scores, where every item has a label; a column of sets that is all empty is none.
  void say_scores() const {
    const auto& config = passes_.task().task.config;
    const bool has_sets = config.kind->has_sets;
    if (!are_labelled_ || items_.empty() || (has_sets && std::ranges::none_of(items_, has_label))) return;
    if (const auto reason = unjudged(); !reason.empty())
      return log_info("task", concat("no figures: ", reason, ": what is right for the items is not given here"));
    const auto scores = scores_of_predictions(passes_.task(), items_, predictions_, interval_resamples);
    log_info("task", concat("the items have labels:\n", tables_text(config.task, scores)));
  }

  /// Why scores of the items would say nothing, by those that the run was trained on; empty: they do.
  std::string unjudged() const {
    const auto& folder = passes_.folder();
    const bool has_rows = !folder.empty();  // not of a head that was trained elsewhere
    const auto train = has_rows ? read_prepared_split(folder, "train").items : std::vector<TaskItem>{};
    return passes_.task().task.config.kind->unjudged(items_, train);
  }

  /// Keeps what scores are made of, as long as there may be some.
  void judge_later(std::vector<TaskItem>& window, std::vector<ItemPrediction>& predictions) {
    are_labelled_ = are_labelled_ && std::all_of(window.begin(), window.end(), has_gold);
    if (!are_labelled_) {
      items_.clear();
      predictions_.clear();
      return;
    }
    std::move(window.begin(), window.end(), std::back_inserter(items_));
    std::move(predictions.begin(), predictions.end(), std::back_inserter(predictions_));
  }

  const PredictRequest& command_;
  PredictionPasses passes_;
  ItemSource source_;
  PredictionOutput output_;
  uint64_t count_ = 0;
  bool are_labelled_ = true;
  std::vector<TaskItem> items_{};
  std::vector<ItemPrediction> predictions_{};
};

}  // namespace

void predict(const PredictRequest& request) { Predictor(request).run(); }

}  // namespace cloze
