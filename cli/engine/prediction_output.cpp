#include "cli/engine/prediction_output.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/engine/parts.h"
#include "core/json.h"
#include "core/text.h"

namespace cloze {

namespace {

bool is_tsv(const std::string& file) {
  const auto has = [&](const char* ending) { return file.ends_with(ending); };
  return has(".tsv") || has(".tsv.gz") || has(".tsv.xz");
}

/// A name that no column of a line of names has: prediction, prediction_2, ...
std::string new_column(std::string_view names) {
  const auto columns = "\t" + std::string(names) + "\t";
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
             in_one_line(labels.names.at(static_cast<size_t>(prediction.prediction.labels.at(w)))) + "\n";
  return lines + "\n";
}

}  // namespace

PredictionOutput::Form PredictionOutput::form_of(const PredictCommand& command) {
  if (command.json || command.out.ends_with(".jsonl")) return Form::json_lines;
  if (command.out.ends_with(".conll")) return Form::columns;
  return command.out.ends_with(".json") ? Form::answers : Form::table;
}

PredictionOutput::PredictionOutput(const PredictCommand& command, const std::string& file, const Task& task)
    : command_(command), task_(task), form_(form_of(command)) {
  const auto kind = task.config.kind;
  require<ConfigError>(form_ != Form::columns || kind == TaskKind::tagging, "--out ", command.out, ": the task is ",
                       kind, ", and a .conll has tags of words; name a .tsv or a .jsonl");
  require<ConfigError>(form_ != Form::answers || kind == TaskKind::spans, "--out ", command.out, ": the task is ", kind,
                       ", and a .json has answers, as SQuAD's files; name a .tsv or a .jsonl");
  if (!command.out.empty()) {
    staged_.emplace(command.out);
    out_.open(staged_->path() + "/predictions", std::ios::binary);
  }
  const bool repeats = form_ == Form::table && kind != TaskKind::tagging && is_tsv(file);
  if (repeats) input_.emplace(file);
  if (form_ == Form::table && !repeats) text_ = "item\tprediction\n";
  if (form_ == Form::answers) text_ = "{";
}

std::string PredictionOutput::table_line(const ItemPrediction& prediction, const TaskItem& item) {
  const auto cell = "\t" + in_one_line(text_of(prediction, task_.config.kind, task_.labels)) + "\n";
  if (!input_) return in_one_line(item.id) + cell;
  std::string lines;
  while (input_->number < item.line && input_->next(line_)) {
    if (!has_header || has_written_header_ || line_.empty()) continue;
    lines += std::string(line_) + "\t" + new_column(line_) + "\n";
    has_written_header_ = true;
  }
  return lines + std::string(line_) + cell;
}

void PredictionOutput::add(const ItemPrediction& prediction, const TaskItem& item) {
  switch (form_) {
    case Form::json_lines:
      text_ += json_text(json_of(prediction, item, task_.config.kind, task_.labels)) + "\n";
      break;
    case Form::table:
      text_ += table_line(prediction, item);
      break;
    case Form::columns:
      text_ += tag_lines(prediction, item, task_.labels);
      break;
    case Form::answers:
      text_ += concat(is_first_ ? "" : ",\n", json_text(nlohmann::json(item.id)), ": ",
                      json_text(nlohmann::json(prediction.prediction.answer)));
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

}  // namespace cloze
