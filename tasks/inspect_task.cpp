#include "tasks/inspect_task.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "core/report/table.h"
#include "core/spelling.h"
#include "core/text.h"
#include "tasks/kinds/answers.h"
#include "tasks/rows/epoch_order.h"

namespace cloze {

namespace {

using nlohmann::ordered_json;

/// Items, or words, whose labels the training split lacks.
uint64_t unknown_labels_of(const TaskAnswer& gold, AnyTaskKind kind) {
  if (gold.form == AnswerForm::label) return gold.label < 0;
  const auto count = std::ranges::count(gold.labels, unknown_label);
  return static_cast<uint64_t>(kind->has_words ? count : std::min<int64_t>(count, 1));
}

void count_value(InspectedSplit& split, const TaskAnswer& gold, size_t before) {
  if (gold.form != AnswerForm::value) return;
  split.least = before == 0 ? gold.value : std::min(split.least, gold.value);
  split.greatest = before == 0 ? gold.value : std::max(split.greatest, gold.value);
  split.mean += (gold.value - split.mean) / static_cast<double>(before + 1);
}

/// The length that a share of the rows does not exceed.
int64_t quantile_of(const std::vector<int64_t>& lengths, double fraction) {
  int64_t all = 0, seen = 0;
  for (const auto count : lengths) all += count;
  for (size_t length = 0; length < lengths.size(); ++length) {
    seen += lengths[length];
    if (seen > 0 && static_cast<double>(seen) >= fraction * static_cast<double>(all))
      return static_cast<int64_t>(length);
  }
  return 0;
}

double mean_of(const std::vector<int64_t>& lengths) {
  double sum = 0, all = 0;
  for (size_t length = 0; length < lengths.size(); ++length) {
    sum += static_cast<double>(length) * static_cast<double>(lengths[length]);
    all += static_cast<double>(lengths[length]);
  }
  return all > 0 ? sum / all : 0;
}

}  // namespace

RowOptions row_options(const TaskConfig& config, const TaskLabels& labels) {
  return {.kind = config.kind,
          .num_labels = labels.size(),
          .max_length = config.max_length,
          .truncation = config.truncation,
          .max_question = config.max_question,
          .max_target = config.max_target,
          .most_new = most_new_tokens(config),
          .end_of_cut = config.end_of_cut};
}

TaskInspection inspect_task(const Task& task, const TaskRowMaker& maker, const Rng& order, int64_t examples) {
  TaskInspection inspection;
  std::vector<std::pair<size_t, RowGroup>> groups;  // of the training split: item, rows of it
  std::vector<TaskRow> rows;
  for (const auto* split : {&task.train, &task.valid, &task.test}) {
    if (split->items.empty()) continue;
    InspectedSplit counted{.name = split->name, .labels = label_counts(*split, task.labels)};
    for (size_t i = 0; i < split->items.size(); ++i) {
      rows.clear();
      maker.add(split->items[i], static_cast<int64_t>(i), rows, counted.rows);
      counted.unknown_labels += unknown_labels_of(split->items[i].gold, task.config.kind);
      count_value(counted, split->items[i].gold, i);
      if (split != &task.train) continue;
      for (const auto& group : row_groups(maker.options().kind, rows)) groups.emplace_back(i, group);
    }
    inspection.splits.push_back(std::move(counted));
  }
  for (int64_t i = 0; i < examples && !groups.empty(); ++i) {
    const auto& [number, group] = groups[item_at(order, groups.size(), static_cast<uint64_t>(i))];
    RowCounts ignored;
    rows.clear();
    maker.add(task.train.items[number], static_cast<int64_t>(number), rows, ignored);
    const auto first = rows.begin() + static_cast<std::ptrdiff_t>(group.first);
    inspection.examples.push_back(
        {&task.train.items[number], {first, first + static_cast<std::ptrdiff_t>(group.count)}});
  }
  return inspection;
}

namespace {

void add_inputs(const TaskRow& row, ordered_json& to) {
  to["input_ids"] = row.ids;
  to["attention_mask"] = std::vector<int>(row.ids.size(), 1);
  if (!row.segments.empty()) to["token_type_ids"] = row.segments;
}

ordered_json json_of_choice(const TaskExample& example) {
  auto candidates = ordered_json::array();
  ordered_json right;
  for (const auto& row : example.rows) {
    ordered_json candidate;
    add_inputs(row, candidate);
    candidates.push_back(candidate);
    if (row.gold.label == 1) right = row.candidate;
  }
  return {{"item", example.item->id}, {"choices", candidates}, {"label", right}};
}

ordered_json json_of(const TextCounts& counts) {
  return {{"texts", counts.texts},
          {"tokens", counts.tokens},
          {"empty", counts.empty},
          {"cut_texts", counts.cut_texts},
          {"cut_tokens", counts.cut_tokens}};
}

ordered_json json_of(const InspectedSplit& split, const Task& task) {
  const auto& rows = split.rows;
  ordered_json made{{"items", rows.items},
                    {"rows", rows.rows},
                    {"items_in_windows", rows.items_in_windows},
                    {"first", json_of(rows.first)}};
  if (rows.second.texts > 0) made["second"] = json_of(rows.second);
  made["lengths"] = {{"mean", mean_of(rows.lengths)},
                     {"median", quantile_of(rows.lengths, 0.5)},
                     {"p90", quantile_of(rows.lengths, 0.9)},
                     {"p99", quantile_of(rows.lengths, 0.99)},
                     {"longest", quantile_of(rows.lengths, 1)}};
  task.config.kind->write_counts(split, made);
  if (!task.config.kind->learns_labels && !task.config.kind->has_candidates) return made;
  auto labels = ordered_json::object();
  for (size_t id = 0; id < split.labels.size(); ++id) labels[task.labels.names[id]] = split.labels[id];
  made["labels"] = labels;
  made["unknown_labels"] = split.unknown_labels;
  return made;
}

}  // namespace

ordered_json to_json(const TaskInspection& inspection, const Task& task) {
  auto examples = ordered_json::array(), counts = ordered_json::object();
  for (const auto& example : inspection.examples) {
    if (task.config.kind->rows_compete) {
      examples.push_back(json_of_choice(example));
      continue;
    }
    for (const auto& row : example.rows) {
      ordered_json made{{"item", example.item->id}};
      if (std::holds_alternative<Windows>(task.config.truncation)) made["window"] = row.window;
      add_inputs(row, made);
      task.config.kind->write_target(row, *example.item, made);
      examples.push_back(made);
    }
  }
  for (const auto& split : inspection.splits) counts[split.name] = json_of(split, task);
  return {{"examples", examples}, {"counts", counts}, {"notes", task.notes}};
}

namespace {

std::string share_of(uint64_t count, uint64_t all) {
  return all == 0 ? "-" : in_percent(static_cast<double>(count) / static_cast<double>(all));
}

Table lengths_table(const TaskInspection& inspection) {
  Table table{.title = "lengths of rows, in tokens",
              .header = columns_of_numbers({"part", "items", "rows", "mean", "median", "90 %", "99 %", "longest"})};
  for (const auto& split : inspection.splits) {
    const auto& lengths = split.rows.lengths;
    table.rows.push_back({split.name, std::to_string(split.rows.items), std::to_string(split.rows.rows),
                          digits(mean_of(lengths), 4), std::to_string(quantile_of(lengths, 0.5)),
                          std::to_string(quantile_of(lengths, 0.9)), std::to_string(quantile_of(lengths, 0.99)),
                          std::to_string(quantile_of(lengths, 1))});
  }
  return table;
}

Table labels_table(const TaskInspection& inspection, const Task& task) {
  Table table{.title = "labels", .header = columns_of_numbers({"label"})};
  for (const auto& name : task.labels.names) table.rows.push_back({visible(name)});
  for (const auto& split : inspection.splits) {
    table.header.emplace_back(split.name, ColumnKind::number);
    uint64_t all = 0;
    for (const auto count : split.labels) all += count;
    for (size_t id = 0; id < split.labels.size(); ++id)
      table.rows[id].push_back(concat(split.labels[id], " (", share_of(split.labels[id], all), ")"));
  }
  return table;
}

/// `train: 12 of 100 first texts cut, 340 of 9,000 tokens`, or nothing.
void say_cut(const std::string& split, const char* which, const TextCounts& counts, std::string& text) {
  if (counts.cut_texts > 0)
    text += concat("  ", split, ": ", thousands(counts.cut_texts), " of ", counted(counts.texts, which), " cut, ",
                   thousands(counts.cut_tokens), " of ", counted(counts.tokens, "token"), " (",
                   share_of(counts.cut_tokens, counts.tokens), ")\n");
  if (counts.empty > 0) text += concat("  ", split, ": ", counted(counts.empty, which), " without a token\n");
}

/// What is not in the rows as it stands in the files.
std::string losses_of(const TaskInspection& inspection, const Task& task) {
  std::string text;
  const auto& kind = task.config.kind;
  for (const auto& [name, rows, labels, unknown, least, greatest, mean] : inspection.splits) {
    say_cut(name, kind->texts[0], rows.first, text);
    say_cut(name, kind->texts[1], rows.second, text);
    const auto say = [&](uint64_t count, const char* thing, const char* what) {
      if (count > 0) text += concat("  ", name, ": ", counted(count, thing), " ", what, "\n");
    };
    say(rows.items_in_windows, "item", "in several windows");
    say(rows.words_without_token, "word", "without a token, which get the tag of no phrase or the most frequent one");
    for (const auto& word : rows.listed_words) text += concat("    item ", word.item, ", word ", word.word, "\n");
    say(rows.cut_words, "word", "longer than a row, which has its beginning");
    say(unknown, kind->label_unit, "with a label that the training part lacks: never predicted, counted as wrong");
    say(rows.items_without_answer, "item", "without an answer");
    say(rows.windows_without_answer, "window", "without the answer, which point at the class token");
    say(rows.split_answers, "window", "with a part of the answer");
    say(rows.lost_answers, "answer", "that no window has whole");
    say(rows.answers_without_token, "answer", "without a token, which no loss counts");
  }
  return text.empty() ? "nothing is cut\n" : "cut, and in windows\n" + text;
}

/// The tokens of a row, each first token of a word with its tag.
std::string tokens_of(const TaskRow& row, const Task& task, const Tokenizer& tokenizer) {
  std::string text;
  for (size_t at = 0; at < row.ids.size(); ++at) {
    text += (at > 0 ? " " : "") + visible(tokenizer.readable_piece(row.ids[at]));
    if (!row.words.empty() && !row.gold.labels.empty() && row.gold.labels[at] >= 0)
      text += "/" + name_of_label(task.labels, row.gold.labels[at]);
  }
  return text;
}

}  // namespace

std::string inspection_report(const TaskInspection& inspection, const Task& task, const Tokenizer& tokenizer) {
  const auto kind = task.config.kind;
  std::string text = concat(task.config.task, ": ", name_of(kind), "\n\n");
  if (kind->form == AnswerForm::value) {
    for (const auto& split : inspection.splits)
      text += concat("  ", split.name, ": values from ", shortest(split.least), " to ", shortest(split.greatest),
                     ", mean ", digits(split.mean, 4), "\n");
    text += "\n";
  } else if (task.labels.size() > 0) {
    text += to_text(labels_table(inspection, task)) + "\n";
  }
  text += to_text(lengths_table(inspection)) + "\n" + losses_of(inspection, task);
  if (!task.notes.empty()) text += "\nnotes\n";
  for (const auto& note : task.notes) text += wrapped("  ", note, 100, 4);
  for (const auto& example : inspection.examples)
    for (const auto& row : example.rows) {
      const auto gold = kind->target_text(row, *example.item, task.labels);
      text += concat("\n", visible(example.item->id), row.window > 0 ? concat(", window ", row.window) : "",
                     kind->rows_compete ? concat(", candidate ", row.candidate) : "", gold.empty() ? "" : ": " + gold,
                     "\n", wrapped("  ", tokens_of(row, task, tokenizer), 100, 2));
    }
  return text;
}

}  // namespace cloze
