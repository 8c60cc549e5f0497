#include "cli/evaluate_task.h"

#include <nlohmann/json.hpp>

#include "cli/output_file.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"
#include "tasks/figures_output.h"
#include "tasks/predictions.h"
#include "tasks/task.h"
#include "tasks/task_metric.h"

namespace cloze {

namespace {

const TaskPart& part_of(const Task& task, const std::string& name) {
  if (name == "train") return task.train;
  return name == "valid" ? task.valid : task.test;
}

std::string text_of(const std::vector<Table>& tables, const std::string& format) {
  std::string text;
  for (const auto& table : tables) {
    if (!text.empty()) text += "\n";
    text += format == "latex" ? to_latex(table) : format == "markdown" ? to_markdown(table) : to_text(table);
  }
  return text;
}

void add_floors(const Task& task, const TaskPart& part, const TaskFiguresCommand& command, const MetricOptions& options,
                TaskFigures& figures) {
  if (task.train.items.empty()) return;
  const auto kind = task.config.kind;
  add_floor(kind, Floor::constant, task.train.items, part.items, task.labels, options, figures);
  if (command.with_words) add_floor(kind, Floor::words, task.train.items, part.items, task.labels, options, figures);
}

}  // namespace

void add_task_figures(CLI::App& verb, TaskFiguresCommand& c) {
  auto* task = verb.add_option("--task", c.task,
                               "task whose figures are computed, of anybody's predictions: its file, or its name in "
                               "./tasks or $CLOZE_TASKS");
  auto* predictions =
      verb.add_option("--predictions", c.predictions,
                      "predictions for the items: JSON lines, JSON of SQuAD's or BabyLM's form, or lines of labels");
  task->needs(predictions);
  const auto before = verb.get_options().size();
  verb.add_option("--part", c.part, "part of the task that they are for")
      ->check(CLI::IsMember({"train", "valid", "test"}))
      ->capture_default_str();
  verb.add_option(
      "--against", c.against,
      "other predictions for the same items, which the first are compared with: McNemar's test, differences");
  verb.add_option_function<std::string>(
          "--floor", [&c](const std::string&) { c.with_words = true; },
          "beside every figure, that of a regression on the words of the training part")
      ->check(CLI::IsMember({"words"}));
  auto* no_answer =
      verb.add_option("--no-answer", c.no_answer, "spans: JSON file of no-answer scores, as SQuAD 2.0 has");
  verb.add_option("--no-answer-threshold", c.threshold, "score above which a question gets no answer")
      ->needs(no_answer)
      ->capture_default_str();
  std::string schemes;
  for (const auto& one : choices(EntityScheme{})) schemes += (schemes.empty() ? "" : ", ") + std::string(one.name);
  verb.add_option_function<std::string>(
          "--scheme", [&c](const std::string& name) { c.scheme = choice_of<EntityScheme>(name); },
          "tagging: scheme of the strict figures: " + schemes)
      ->default_str("that of the task");
  verb.add_option("--confusion", c.out, "write the confusion to this SVG file");
  verb.add_option("--table", c.format, "form of the tables")
      ->check(CLI::IsMember({"text", "markdown", "latex"}))
      ->capture_default_str();
  for (size_t i = before; i < verb.get_options().size(); ++i) verb.get_options()[i]->needs(task);
  predictions->needs(task);
  for (auto* option : verb.get_options())
    if (option == task || option->get_needs().count(task) > 0) option->group("Tasks");
}

void print_task_figures(const TaskFiguresCommand& c) {
  if (!c.out.empty()) check_output_file("--confusion", c.out);
  const auto task = open_task(c.task, {});
  const auto kind = task.config.kind;
  const auto& items = part_of(task, c.part).items;
  const auto read = read_predictions(c.predictions, kind, items, task.labels, c.no_answer);
  auto options = metric_options(task);
  if (c.scheme) options.scheme = *c.scheme;
  options.has_no_answer_scores = read.has_no_answer_scores;
  options.no_answer_order = read.no_answer_order;
  if (!c.no_answer.empty()) options.no_answer_threshold = c.threshold;
  auto figures = metrics_of(kind, items, task.labels, read.predictions, options);
  add_floors(task, part_of(task, c.part), c, options, figures);
  std::optional<PairedFigures> compared;
  if (!c.against.empty()) {
    const auto other = read_predictions(c.against, kind, items, task.labels);
    auto alike = options;  // the other file has no scores of its own
    alike.no_answer_threshold.reset();
    alike.has_no_answer_scores = false;
    compared = compare_predictions(kind, items, task.labels, read.predictions, other.predictions, alike);
  }
  require<ConfigError>(c.out.empty() || figures.confusion.has_value(), "--confusion: a task of ", name_of(kind),
                       " with ", task.labels.size(), " labels has no confusion to draw; it takes up to ", most_confused,
                       " labels");
  if (!c.out.empty()) write_atomic(c.out, confusion_svg(task.config.task, *figures.confusion));
  if (c.json) {
    auto found = to_json(task.config.task, figures);
    found["notes"] = task.notes;
    if (compared) found["against"] = to_json(*compared);
    return print_data(json_text(found) + "\n");
  }
  auto tables = tables_of(task.config.task, figures);
  if (compared) tables.push_back(table_of(*compared));
  print_text(text_of(tables, c.format));
  for (const auto& note : task.notes) log_info("task", note);
}

}  // namespace cloze
