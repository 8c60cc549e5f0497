#include "cli/engine/prediction_output.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/engine/parts.h"
#include "core/json.h"
#include "core/shown_character.h"
#include "core/text.h"
#include "data/reading/byte_source.h"

namespace cloze {

namespace {

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

}  // namespace

PredictionOutput::Form PredictionOutput::form_of(const PredictCommand& command) {
  if (command.json || command.out.ends_with(".jsonl")) return Form::json_lines;
  if (command.out.ends_with(".csv")) return Form::csv;
  if (command.out.ends_with(".conll")) return Form::columns;
  return command.out.ends_with(".json") ? Form::answers : Form::table;
}

PredictionOutput::PredictionOutput(const PredictCommand& command, const std::string& file, const Task& task)
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
  const auto predicted = cell(task_.config.kind->text_of(prediction.prediction.answer, task_.labels));
  return lines + (input_ ? record_ : cell(item.id)) + separator_ + predicted + "\n";
}

void PredictionOutput::add(const ItemPrediction& prediction, const TaskItem& item) {
  switch (form_) {
    case Form::json_lines:
      text_ += json_text(task_.config.kind->json_of(prediction, item, task_.labels)) + "\n";
      break;
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

}  // namespace cloze
