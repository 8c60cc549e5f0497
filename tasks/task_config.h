#pragma once
// A task, as it stands in YAML: what is asked, the files of its parts, and where these have texts and labels.
//
//   task: sst2
//   kind: classification
//   data: {train: SST-2/train.tsv, test: SST-2/dev.tsv, text: sentence, label: label}
//   labels: {"0": negative, "1": positive}
//   metric: accuracy
//   like: turc-2019
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/config/config.h"
#include "core/text_template.h"
#include "tasks/item.h"
#include "tasks/kind.h"
#include "tasks/tag_scheme.h"

namespace cloze {

/// How the files of a task are written.
enum class TaskFormat { automatic, tsv, csv, jsonl, conll, conllu, squad, trec, folders };
constexpr auto choices(TaskFormat) {
  using enum TaskFormat;
  return std::array{
      Choice{automatic, "auto", "by the name of the file: .tsv, .csv, .jsonl, .conll, .conllu, .json"},
      Choice{tsv, "tsv", "cells between tabs, in which quotes are text"},
      Choice{csv, "csv", "cells between commas or semicolons, in quotes where they have such (RFC 4180)"},
      Choice{jsonl, "jsonl", "an object a line"},
      Choice{conll, "conll", "a word a line in columns between tabs or spaces, an empty line between sentences"},
      Choice{conllu, "conllu", "the same by the ten columns of Universal Dependencies"},
      Choice{squad, "squad", "the JSON of SQuAD 1.1 and 2.0"},
      Choice{trec, "trec", "`COARSE:fine text`, with the columns coarse, fine (`COARSE:fine`) and text"},
      Choice{folders, "folders", "a folder for each label, in it a file for each text; the columns label and text"}};
}

/// The files of a task, and their columns: names, or positions from 0, of which -1 is the last one.
struct TaskDataConfig {
  std::string train, valid, test;
  TaskFormat format = TaskFormat::automatic;
  bool header = false;
  std::string text, second, id, group;
  std::vector<std::string> label{};
  std::vector<std::string> candidates{};
  std::string answers;
  std::string each;
  std::vector<std::string> skip_labels{};
  std::string label_separator = ",";
  int64_t few = 0;
  double fraction = 1;
  TagScheme scheme = TagScheme::none;
};

template <class V>
void describe(V& v, TaskDataConfig& c) {
  v("train", c.train,
    "file of the training part, `A + B` for files whose lines stand side by side; looked for beside the task file, "
    "then "
    "in $CLOZE_TASKS or ./tasks");
  v("valid", c.valid,
    "file of the part that chooses the checkpoint; empty = a tenth of the training part; test = the test part, and "
    "every figure says so");
  v("test", c.test, "file of the part that is judged at the end; empty = that of valid");
  v("format", c.format, "how the files are written");
  v("header", c.header, "tables whose columns are numbered here begin with a line of names, as those named here do");
  v("text", c.text,
    "column of the text, or a template that joins columns: \"{title}: {body}\"; spans: the question; choice: the "
    "premise; tagging: the words");
  v("second", c.second, "column or template of the second text; spans: the context; empty = there is none");
  v("label", c.label,
    "column of the label, of the tags, or of the number of the right candidate, counted from 0; multilabel: a column "
    "of several, or columns of 0 and 1, each a label; generation: columns of references, or a list of them");
  v("id", c.id, "column or template of what names an item; empty = its part and number");
  v("group", c.group,
    "column or template of what items belong together by: figures are grouped by it, and no part divides a group");
  v("candidates", c.candidates, "columns of the candidates of a choice, or one column with a list of them");
  v("answers", c.answers, "key of the answers of spans in JSON lines: [{text, answer_start}] or {text: [...], ...}");
  v("each", c.each, "path of nested lists in JSON lines, of whose elements each is an item: passage.questions.answers");
  v("skip_labels", c.skip_labels, "items with one of these labels are left out and counted, as `-` of SNLI");
  v("few", c.few,
    "items of each label that are trained on, drawn by train.seed; of kinds without one label an item so many in all; "
    "0 = all",
    at_least(0));
  v("fraction", c.fraction,
    "of the items of the training part that are trained on, drawn by train.seed; those of a smaller one are among them",
    in_range(1e-9, 1));
  v("label_separator", c.label_separator, "what stands between the labels of a cell of multilabel");
  v("scheme", c.scheme, "how tags mark phrases; tags of another form are refused");
}

/// What is done with a text of more tokens than a row has.
struct LongestTruncation {
  static constexpr const char* kind = "longest";
  static constexpr const char* words = "the longer of two texts loses its last token, again and again";
};
struct FirstTruncation {
  static constexpr const char* kind = "first";
  static constexpr const char* words = "the first text loses its end";
};
struct SecondTruncation {
  static constexpr const char* kind = "second";
  static constexpr const char* words = "the second text loses its end";
};
struct HeadTailTruncation {
  static constexpr const char* kind = "head_tail";
  static constexpr const char* words = "the beginning and the end of a text stay";
  int64_t head_tail = 128;
};
struct Windows {
  static constexpr const char* kind = "windows";
  static constexpr const char* words = "a text is read in several rows; its logits are the mean of theirs";
  int64_t stride = 128;
};
template <class V>
void describe(V&, LongestTruncation&) {}
template <class V>
void describe(V&, FirstTruncation&) {}
template <class V>
void describe(V&, SecondTruncation&) {}
template <class V>
void describe(V& v, HeadTailTruncation& c) {
  v("head_tail", c.head_tail, "tokens of the beginning that stay; the rest of the row is the end", at_least(1));
}
template <class V>
void describe(V& v, Windows& c) {
  v("stride", c.stride, "tokens from the beginning of a window to that of the next; of a shorter window half",
    at_least(1));
}
using Truncation = std::variant<LongestTruncation, FirstTruncation, SecondTruncation, HeadTailTruncation, Windows>;
/// The kinds of a cut share nothing.
inline void keep_shared(const Truncation&, Truncation&) {}

/// How the texts of a generation are generated, as transformers' GenerationConfig says it.
struct DecodingConfig {
  int64_t num_beams = 1;
  double length_penalty = 1;
  int64_t max_new_tokens = 0;
  int64_t min_new_tokens = 0;
  int64_t no_repeat_ngram_size = 0;
};
template <class V>
void describe(V& v, DecodingConfig& c) {
  v("num_beams", c.num_beams, "beams of the search; 1 = the likeliest token each time", in_range(1, 1000));
  v("length_penalty", c.length_penalty, "of beams, whose sums of log-probabilities are divided by length ^ penalty",
    in_range(-100, 100));
  v("max_new_tokens", c.max_new_tokens, "tokens of a text with its end token; 0 = max_target, else 64", at_least(0));
  v("min_new_tokens", c.min_new_tokens, "tokens before which no text ends", at_least(0));
  v("no_repeat_ngram_size", c.no_repeat_ngram_size, "n-grams of this length occur once; 0 = any number of times",
    at_least(0));
}

/// Whether a label is predicted above a probability: one of two, or each of several.
inline bool has_threshold(AnyTaskKind kind) {
  return kind->has_sets || (kind->form == AnswerForm::label && kind->learns_labels && !kind->has_words);
}

struct TaskConfig {
  std::string task;
  AnyTaskKind kind{};
  TaskDataConfig data{};
  AnyKeys labels{};
  std::vector<std::string> metric{};
  std::string like;
  Truncation truncation = LongestTruncation{};
  int64_t max_length = 0;
  int64_t max_question = 64;
  int64_t max_answer = 30;
  std::vector<std::string> class_weights{};
  std::vector<int64_t> scale{};
  bool choose_threshold = false;
  int64_t max_target = 0;
  bool end_of_cut = true;
  DecodingConfig decoding{};
};

/// The most tokens of a generated text.
inline int64_t most_new_tokens(const TaskConfig& task) {
  constexpr int64_t usual = 64;
  if (task.decoding.max_new_tokens > 0) return task.decoding.max_new_tokens;
  return task.max_target > 0 ? task.max_target : usual;
}

template <class V>
void describe(V& v, TaskConfig& c) {
  v("task", c.task, "name of the task, which names its column in reports");
  std::string kind = name_of(c.kind);
  v("kind", kind, "what is asked", one_of(task_kind_names()));
  c.kind = kind;
  v("data", c.data, "files and columns");
  v("labels", c.labels,
    "what stands in the files and the name of each, in the order of their ids: {\"0\": negative, \"1\": positive}; "
    "empty = what the training part has, sorted as text");
  v("metric", c.metric, "figures of the task, the first of which chooses; empty = those usual for its kind");
  v("like", c.like, "recipe of fine-tuning, where a run names none");
  if (c.kind->reads_windows) choose<Windows>(c.truncation);
  v.kind("cut", c.truncation, "what is done with texts that are too long");
  v.refuse("cut", c.kind->reads_windows && !std::holds_alternative<Windows>(c.truncation)
                      ? concat("is ", kind_in(c.truncation), ", and of ", name_of(c.kind),
                               " no word is cut; leave it out, or write windows")
                      : "");
  v("max_length", c.max_length, "tokens of a row; 0 = as many as the model reads", at_least(0));
  v("max_question", c.max_question, "spans: tokens of a question, whose end is cut", at_least(1));
  v("max_answer", c.max_answer, "spans: tokens of an answer", at_least(1));
  v("class_weights", c.class_weights,
    "weights of the labels in the loss, in the order of their ids, or balanced = by their shares of the training part");
  v("scale", c.scale, "regression: the least and the greatest target, which become 0 and 1 in the loss; empty = as is",
    or_none(in_range(-1e9, 1e9)));
  v("choose_threshold", c.choose_threshold,
    "the probability above which a label is predicted is chosen on the valid part, as the first metric likes best; "
    "false = one half; multilabel, and classification with two labels");
  v.refuse("choose_threshold", c.choose_threshold && !has_threshold(c.kind)
                                   ? concat("is true, and ", name_of(c.kind), " predicts without one; leave it out")
                                   : "");
  if (!c.kind->generates) return;
  v("max_target", c.max_target, "tokens of a target with its end token; 0 = as many as the model has", at_least(0));
  v("end_of_cut", c.end_of_cut,
    "a target that is cut keeps its end token; false = it stops in its midst, as T5's own code has it");
  v("decoding", c.decoding, "how texts are generated");
}

/// The folder of the files of tasks: $CLOZE_TASKS, else `tasks`.
std::string tasks_folder();

/// The config of a task file, with overrides `a.b=c`. Throws ConfigError with all mistakes, one a line.
TaskConfig read_task_config(const std::string& file, const std::vector<std::string>& overrides = {});

/// The names of the labels that `labels` gives, with what stands in files for each, else the columns of labels that
/// `data.label` names; none where neither gives any. Of choice each candidate has one name, whatever files call it.
TaskLabels given_labels(const TaskConfig& config);

/// A file of a task, compressed (`.xz`, `.gz`) or not: beside the task file, else in tasks_folder(), where it is an
/// absolute path as it is. Throws ConfigError with the places where it was looked for, DataError for a pipe or a
/// device.
std::string find_task_data(const std::string& name, const std::string& task_file);

/// The columns of a template, or the column of that name, which has no braces; `key` has it. Throws ConfigError for a
/// template that has none.
TextTemplate columns_in(const std::string& text, const std::string& key);

}  // namespace cloze
