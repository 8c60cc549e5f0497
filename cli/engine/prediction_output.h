#pragma once
// Predictions as `cloze predict` prints and writes them.
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "cli/command.h"
#include "core/file.h"
#include "data/reading/line_reader.h"
#include "data/reading/table_reader.h"
#include "tasks/figures/item_prediction.h"
#include "tasks/task.h"

namespace cloze {

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
  PredictionOutput(const PredictCommand& command, const std::string& file, const Task& task);

  void add(const ItemPrediction& prediction, const TaskItem& item);
  /// Prints what was added, or writes it to the file that will be --out.
  void flush();
  /// Puts the file at its place. Throws Error with the system's reason.
  void finish();

  bool has_header = false;  ///< the table whose lines are repeated begins with a line of names

 private:
  enum class Form { json_lines, table, csv, columns, answers };
  static Form form_of(const PredictCommand& command);
  std::string cell(const std::string& text) const;
  /// Reads the next record of the table whose lines are repeated; false at the end.
  bool read_record();
  std::string table_line(const ItemPrediction& prediction, const TaskItem& item);

  const PredictCommand& command_;
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

}  // namespace cloze
