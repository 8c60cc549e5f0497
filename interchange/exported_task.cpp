#include "interchange/exported_task.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/contains.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/report/score_json.h"
#include "core/spelling.h"
#include "core/text.h"
#include "finetune/chosen.h"
#include "run/moved.h"
#include "run/records/task_summary.h"
#include "tasks/scores/floors.h"
#include "tasks/scores/task_metric.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string rows_of_task(const LoadedRun& run) { return tokens_of_run(run.folder, run.config.data.tokens); }

/// What a call of a pipeline needs to cut texts as these were.
ReadingNote cut_note_of(const TaskConfig& task, const std::string& length) {
  const auto beyond = concat("Of more than ", length, " tokens, ");
  if (task.kind->has_words)
    return {beyond + "words were read in windows; pipelines do so with stride=, else later words have no tag."};
  if (task.kind->has_answers)
    return {beyond +
            "contexts were read in windows, as a tokenizer cuts them with truncation=\"only_second\", stride= and "
            "return_overflowing_tokens=True."};
  if (std::holds_alternative<Windows>(task.truncation))
    return {beyond + "texts were read in windows, whose logits have a mean; pipelines read the first one.", true};
  if (std::holds_alternative<HeadTailTruncation>(task.truncation))
    return {beyond + "the beginning and the end were read; pipelines read the beginning alone.", true};
  const auto* how = std::holds_alternative<FirstTruncation>(task.truncation)    ? "\"only_first\""
                    : std::holds_alternative<SecondTruncation>(task.truncation) ? "\"only_second\""
                    : task.data.second.empty() ? "True"
                                               : "True, but keep another token of two long texts";
  return {concat(beyond, "texts were cut; pipelines do so with truncation=", how, ".")};
}

/// The scores that say what others of their kind do not: of two labels five of 17.
bool is_shown(const std::string& metric, AnyTaskKind kind) {
  static const std::vector<std::string> shown{
      "accuracy", "auc",   "auc_macro",   "f1",     "f1_macro", "f1a",    "f1_strict", "mcc",  "pearson", "spearman",
      "mse",      "exact", "exact_match", "rouge1", "rouge2",   "rougeL", "rougeLsum", "bleu", "chrf"};
  return contains(shown, metric) ||
         (metric == "f1_micro" && kind->form == AnswerForm::labels);  // of one label it is accuracy
}

/// What the constant prediction reaches on the test part.
std::vector<Score> floor_scores(const LoadedRun& run, const PreparedTask& prepared) {
  const auto& task = prepared.task;
  const auto items = read_prepared_split(rows_of_task(run), "test").items;
  const auto kind = task.config.kind;
  auto options = metric_options(task);
  options.resamples = 0;
  return values_of(kind, items, task.labels, constant_predictions(kind, items, task.labels), options);
}

std::optional<double> number_at(const json& value, const char* pointer) {
  const auto number = value_at(value, pointer);
  return number.is_number() ? std::optional(number.get<double>()) : std::nullopt;
}

/// Whether the summary of a run is of the checkpoint that was opened: the best one, or the last of a run without one.
bool is_of_checkpoint(const LoadedRun& run) {
  const auto summary = parse_json(read_text(run.folder + "/summary.json", 64 << 20));
  const auto best = value_at(summary, "/best_step"), last = value_at(summary, "/steps");
  return run.state.step == (best.is_number_integer() && best > 0 ? best : last);
}

}  // namespace

std::optional<PreparedTask> exported_task(const LoadedRun& run) {
  if (run.config.task.name.empty()) return std::nullopt;
  try {
    return open_prepared_task(rows_of_task(run));
  } catch (const DataError&) {
    return std::nullopt;
  }
}

int64_t row_length(const LoadedRun& run, const TaskConfig& task) {
  const auto longest = backbone_of(run.config.model).max_input_length();
  const bool has_limit = longest < BackboneConfig::unlimited_length;
  if (task.max_length == 0) return has_limit ? longest : 0;
  return std::min(task.max_length, longest);
}

json decoding_keys(const TaskConfig& task) {
  if (!task.kind->generates) return json::object();
  const auto& decoding = task.decoding;
  json keys{{"num_beams", decoding.num_beams}, {"max_new_tokens", most_new_tokens(task)}, {"do_sample", false}};
  if (decoding.num_beams > 1) keys["length_penalty"] = decoding.length_penalty;
  if (decoding.min_new_tokens > 0) keys["min_new_tokens"] = decoding.min_new_tokens;
  if (decoding.no_repeat_ngram_size > 0) keys["no_repeat_ngram_size"] = decoding.no_repeat_ngram_size;
  return keys;
}

std::vector<ReadingNote> reading_notes(const LoadedRun& run, const TaskConfig& task) {
  std::vector<ReadingNote> notes;
  if (const auto length = row_length(run, task); length > 0)
    notes.push_back(cut_note_of(task, thousands(static_cast<uint64_t>(length))));
  for (const auto* written : {&task.data.text, &task.data.second})
    if (written->find('{') != std::string::npos)
      notes.push_back({concat("Texts had the form ", shortened(*written),
                              "; pipelines put no columns and no words together, so give them such texts."),
                       true});
  if (task.kind->generates && backbone_of(run.config.model).is_decoder())
    notes.push_back(
        {"A source ends with the token that ends a text, which pipelines do not add; the text follows it.", true});
  if (task.kind->has_answers && chosen_on_valid(run.state).no_answer_threshold != 0)
    notes.push_back({concat("A question has no answer where the score of none is above that of the best answer by ",
                            "more than ", digits(chosen_on_valid(run.state).no_answer_threshold, 5), "."),
                     true});
  if (const double threshold = chosen_on_valid(run.state).threshold; task.choose_threshold)
    notes.push_back({concat("A label is predicted where its probability is above ", fixed(threshold, 2),
                            ", which was chosen on the valid part; pipelines take one half."),
                     true});
  if (const double temperature = chosen_on_valid(run.state).temperature; temperature > 0)
    notes.push_back({concat("Probabilities say how often they are right where logits are divided by ",
                            fixed(temperature, 3), ", the temperature of the valid part.")});
  return notes;
}

std::optional<TestResult> test_result(const LoadedRun& run, const PreparedTask& task) try {
  const auto summary = read_task_summary(run.folder);
  if (!is_of_checkpoint(run)) return std::nullopt;
  TestResult result{.floor_name = name_of_floor(task.task.config.kind, Floor::constant),
                    .floor_words = task.task.config.kind->floor_words,
                    .learned = value_at(summary, "/learned") != false,
                    .chosen = number_at(summary, "/best")};
  const auto& metric = run.config.task.metric;
  const auto floors = floor_scores(run, task);
  for (const auto& [name, entry] : summary.at("test").items()) {
    auto made = score_of(name, entry);
    if (!made.is_defined() || !(name == metric || is_shown(name, task.task.config.kind))) continue;
    for (const auto& floor : floors)
      if (floor.metric == name) made.floors = {{result.floor_name, floor.value}};
    result.scores.insert(name == metric ? result.scores.begin() : result.scores.end(), made);
  }
  for (const auto& note : value_at(summary, "/notes"))
    if (note.is_string()) result.notes.push_back(note.get<std::string>());
  return result.scores.empty() ? std::nullopt : std::optional(result);
} catch (const DataError&) {
  return std::nullopt;
}

}  // namespace cloze
