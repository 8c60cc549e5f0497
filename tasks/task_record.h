#pragma once
// A record of a task's file, as a kind of task reads an item of it.
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tasks/files/records.h"
#include "tasks/files/tag_file.h"
#include "tasks/task_split.h"

namespace cloze {

/// An item that lacks a text or a label.
struct MissingValue : DataError {
  using DataError::DataError;
};

/// 1 or 0 for a cell that says whether an item has a label, -1 for another.
int flag_in(const std::string& text);

/// What a program writes for a number that is missing.
inline bool is_no_number(std::string_view text) {
  return text == "nan" || text == "NaN" || text == "-nan" || text == "NAN";
}

class TaskRecord {
 public:
  TaskRecord(const TaskConfig& task, LabelPool& labels, const SplitOptions& options);
  void open(const std::vector<std::string>& files, TaskFormat format);
  /// Reads the next record; false at the end.
  bool next();
  const RecordReader& reader() const { return *records_; }
  std::string where() const { return records_->where(); }

  // Its texts. Throw MissingValue for null, DataError for a list.
  std::string id() const { return joined(id_); }
  std::string group() const { return joined(group_); }
  std::string text() const { return joined(text_); }
  const std::string& text_name() const { return source_.columns[text_.columns.front()].name; }
  std::string second() const { return joined(second_); }
  bool is_pair() const { return !second_.columns.empty(); }
  /// The text as a list of words; null: it is none.
  const std::vector<std::string>* words() const;
  /// The cells of candidates, as they are.
  std::vector<const Cell*> candidates() const;

  // Its labels.
  bool has_label_columns() const { return !labels_.empty(); }
  /// Whether the item has a label; `may_be_blank`: an empty one counts.
  bool has_label(bool may_be_blank) const;
  bool is_skipped() const;
  size_t label_columns() const { return labels_.size(); }
  const std::string& label_name(size_t i) const { return source_.columns[labels_[i]].name; }
  /// The texts of all columns of labels; columns that are missing or blank have none. Throws DataError for a blank
  /// element of a list.
  std::vector<std::string> label_texts() const;
  const Cell& label_cell() const { return cell(labels_.front()); }
  const std::string& label_text(size_t i = 0) const { return text_cell(labels_[i]); }
  /// The number of a label in the pool. Throws MissingValue for one that is empty or marks a missing value.
  int64_t number(const std::string& label);
  /// Whether `labels` of the task has what is written.
  bool is_given(const std::string& label) const { return names_.contains(label); }
  /// The place of a candidate by its name in `labels`; -1: none.
  int64_t place(const std::string& written) const;
  bool names_places() const { return !places_.empty(); }
  /// Throws DataError for a list or a set as Python prints it: of texts, or one that is said to be of numbers.
  void refuse_python_list(const std::string& text, const char* remedy, bool is_list_of_numbers = false) const;
  /// Checks tags by their names, which `labels` may give.
  void check_tags(std::vector<std::string> tags, const std::string& place);

  const TaskConfig& config;
  LabelPool& pool;
  bool is_first = true;  ///< no item has been read yet
  TagCheck tag_check;
  BadRecords misplaced{};     ///< questions whose answers do not stand where they are said to
  BadRecords out_of_range{};  ///< targets that are not in the range of `scale`

 private:
  /// A text, by the numbers of the columns that it joins.
  struct ColumnText {
    std::vector<std::string> between{};
    std::vector<size_t> columns{};  ///< none: there is no such text
  };
  size_t column(const std::string& name, bool is_optional = false);
  ColumnText columns_of(const std::string& text, const char* key);
  void add_label_columns(const std::string& usual);
  void trim_labels();
  void join_sentences();
  const Cell& cell(size_t i) const;
  const std::string& text_cell(size_t i) const;
  std::string joined(const ColumnText& text) const;

  const SplitOptions& options_;
  RecordSource source_{};
  ColumnText text_{}, second_{}, id_{}, group_{};
  std::vector<size_t> candidates_{};
  std::vector<size_t> labels_{};                          ///< columns; none: there are no labels
  std::unordered_map<std::string, std::string> names_{};  ///< of `labels`, by what is written
  std::unordered_map<std::string, int64_t> places_{};     ///< the same as places among the names
  std::unique_ptr<RecordReader> records_{};
  std::vector<Cell> cells_{};
};

}  // namespace cloze
