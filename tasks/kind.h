#pragma once
// What a kind of task is to the rest of the program. Without LibTorch.
#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "tasks/item.h"

namespace cloze {

enum class TaskFormat;
struct InspectedSplit;
struct ItemPrediction;
struct LabelNames;
struct PredictionSetting;
struct RowCounts;
struct RowLogits;
struct ScoredItems;
struct Task;
struct TaskScores;
struct TaskRow;
struct TaskScorer;
class TaskRecord;
class TaskRowMaker;
/// Makes a scorer of any split of the items.
using TaskScorerMaker = TaskScorer (*)(const ScoredItems&);

/// The keys of JSON lines that a task does not name, as data sets of the hub have them.
struct JsonKeys {
  const char *text = "", *second = "", *label = "";
};

/// Forms of files that one kind alone reads. It reads JSON lines too, and no others.
struct TaskFiles {
  std::vector<TaskFormat> formats{};  ///< empty: it reads tables, JSON lines, lines of TREC and folders
  const char* lacking = "";           ///< what other forms lack, for a mistake in a task file, and the remedy
  const char* lacking_here = "";      ///< the same for a file that was found
  JsonKeys keys{};
};

/// What is so of a kind of task. An option that it has not is refused in its task files.
struct TaskKindFacts {
  const char* name = "";
  AnswerForm form = AnswerForm::label;
  const char* head = "";  ///< the objective that learns it

  // Its task files.
  TaskFiles files{};
  bool has_words = false;           ///< the text is a list of words
  bool learns_labels = false;       ///< labels have ids, which the training split has where the file gives none
  bool has_sets = false;            ///< any number of labels is right, by several columns of 0 and 1 too, or none
  bool has_candidates = false;      ///< one of them is right; `labels` names their places
  bool has_answers = false;         ///< places in a context
  bool has_scheme = false;          ///< labels mark phrases
  bool has_scale = false;           ///< answers are numbers in a range
  bool has_class_weights = false;   ///< losses may be weighed by label
  bool generates = false;           ///< answers are texts, which a decoder writes
  const char* label_unit = "item";  ///< what has a label

  // Its rows.
  bool reads_windows = false;  ///< every word is read, in windows that have a loss each
  bool rows_compete = false;   ///< the rows of an item have a score each, and are one example
  std::array<const char*, 2> texts{"first text", "second text"};  ///< what they are called

  // Its predictions and scores.
  const char* gold_name = "label";      ///< what is right, for the message where it is missing
  const char* key = "label";            ///< of a prediction in JSON lines
  const char* shares = "";              ///< key of the numbers by label or candidate beside it; empty: there are none
  bool is_right_or_wrong = true;        ///< its items are
  const char* floor_name = "majority";  ///< of the constant prediction, and what it is
  const char* floor_words = "one answer for all items, the one that these items have most";
  bool has_floor_of_words = false;  ///< a regression on the words of the training part predicts it
};

/// A kind of task: its facts and what it does. Each is one class in the folder of its name, entered in kinds.h. What it
/// does not say itself is as usual for the form of its answers.
struct TaskKindRules : TaskKindFacts {
  explicit TaskKindRules(const TaskKindFacts& facts) : TaskKindFacts(facts) {}
  virtual ~TaskKindRules() = default;
  TaskKindRules(const TaskKindRules&) = delete;
  TaskKindRules& operator=(const TaskKindRules&) = delete;

  // Items.
  /// Reads the texts of a record.
  virtual void read_texts(const TaskRecord& record, TaskItem& item) const;
  /// Reads what is right; false for an item that is left out.
  virtual bool read_gold(TaskRecord& record, TaskItem& item) const = 0;
  /// What is right, of its form, fits the item and so many labels.
  virtual bool gold_fits(const TaskItem& item, int64_t labels) const;
  /// Why nothing that is predicted for a split can be judged, `60 of 60 labels are none that the training part has`;
  /// empty: it can. As usual, most labels are such as the training split lacks. `train`: none where there is no
  /// training split.
  virtual std::string unjudged(const std::vector<TaskItem>& items, const std::vector<TaskItem>& train) const;

  // Rows.
  /// Adds the rows of an item; as usual those of whole texts, whose windows have one answer.
  virtual void add_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                        RowCounts& counts) const;
  /// An item may have so many rows.
  virtual bool has_rows(const TaskItem&, size_t rows) const { return rows > 0; }
  /// What is right for a row fits it and so many labels.
  virtual bool target_fits(const TaskRow& row, int64_t labels) const;

  // Predictions.
  /// Of several windows the logits are averaged; as usual the likeliest label, or row of rows that compete.
  virtual void predict(const TaskItem& item, std::span<const TaskRow> rows, std::span<const RowLogits> logits,
                       const PredictionSetting& setting, ItemPrediction& made) const;
  /// An answer in a word, as a cell of a table has it.
  virtual std::string spelled(const TaskAnswer& answer, const TaskLabels& labels) const;
  /// A prediction as a line of predictions.jsonl has it.
  virtual nlohmann::ordered_json json_of(const ItemPrediction& made, const TaskItem& item,
                                         const TaskLabels& labels) const;
  /// What a file predicts, by the value under `key`. Throws DataError with the place for what is none.
  virtual TaskAnswer read_answer(const nlohmann::json& value, const LabelNames& labels, const std::string& where) const;
  /// This value as the text of a line has it.
  virtual nlohmann::json value_of_line(const std::string& text, const LabelNames& labels,
                                       const std::string& where) const;
  /// A text of an answer to readers, to whom an empty one may say something.
  virtual std::string shown(const std::string& text) const { return text; }

  // Figures.
  /// Throws DataError for an item or a prediction that cannot be scored.
  virtual void check_prediction(const TaskItem& item, const TaskPrediction& prediction, int64_t labels) const;
  virtual std::vector<TaskScorerMaker> scorers(const ScoredItems& scored) const;
  virtual void add_tables(const ScoredItems&, TaskScores&) const {}
  /// Of kinds whose items are right or wrong: the prediction is wholly right.
  virtual bool is_right(const TaskItem& item, const TaskPrediction& prediction, const ScoredItems& scored) const;
  /// The figure that chooses where a task names none, of those that it has.
  virtual std::string usual_metric(const std::vector<std::string>& scores) const { return scores.at(0); }
  /// What needs no network, an answer for each item; as usual the same one for all.
  virtual std::vector<TaskAnswer> constant_answers(const std::vector<TaskItem>& items, const TaskLabels& labels) const;
  /// The one answer that is right most often; of words the one of each.
  virtual TaskAnswer constant_answer(const std::vector<TaskItem>& items, const TaskLabels& labels) const;

  // What `cloze inspect task` shows.
  /// What is right for a row of an example of one row.
  virtual void write_target(const TaskRow& row, const TaskItem& item, nlohmann::ordered_json& to) const;
  virtual std::string target_text(const TaskRow& row, const TaskItem& item, const TaskLabels& labels) const;
  /// What a split has of its own, besides counts of labels.
  virtual void write_counts(const InspectedSplit&, nlohmann::ordered_json&) const {}
};

/// A kind of task by its name.
class AnyTaskKind {
 public:
  AnyTaskKind();  ///< classification
  /// Throws ConfigError for an unknown name.
  AnyTaskKind(const std::string& name);
  AnyTaskKind(const char* name) : AnyTaskKind(std::string(name)) {}
  const TaskKindRules* operator->() const { return rules_; }
  bool operator==(const AnyTaskKind&) const = default;

 private:
  const TaskKindRules* rules_;
};
inline const char* name_of(AnyTaskKind kind) { return kind->name; }
inline std::ostream& operator<<(std::ostream& out, AnyTaskKind kind) { return out << kind->name; }

/// The names of all kinds, in the order of documentation.
std::vector<std::string> task_kind_names();

/// Adds a kind of another program.
void add_task_kind(std::unique_ptr<TaskKindRules> kind);

}  // namespace cloze
