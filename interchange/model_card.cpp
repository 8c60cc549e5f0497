#include "interchange/model_card.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/file.h"
#include "core/json.h"
#include "core/report/score_json.h"
#include "core/log.h"
#include "core/print.h"
#include "core/report/table.h"
#include "core/text.h"
#include "interchange/exported_task.h"
#include "interchange/huggingface/family.h"
#include "interchange/huggingface_parameters.h"
#include "run/config/evaluation_protocol.h"
#include "run/records/history.h"
#include "run/records/suite_units.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr auto not_recorded = "not recorded";

/// A file of the run as JSON; null where there is none, or no JSON.
json json_of_record(const std::string& path) {
  std::error_code unknown;
  if (!fs::is_regular_file(path, unknown)) return {};
  auto record = parse_json(read_text(path, 64 << 20));
  return record.is_discarded() ? json() : record;
}

std::string text_at(const json& record, const char* pointer, const std::string& otherwise = "") {
  const auto text = string_at(record, pointer);
  return text.empty() ? otherwise : printable(text);
}

/// `1,171 documents`
std::string count_at(const json& record, const char* pointer, const std::string& noun) {
  const auto value = value_at(record, pointer);
  return value.is_number_unsigned() ? counted(value.get<uint64_t>(), noun) : noun + "s: " + not_recorded;
}

/// The last component of a path: those before it are of a machine that readers do not have.
std::string last_component(const std::string& path) {
  auto at = fs::path(path).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();
  return printable(at.filename().string());
}

/// What metrics.jsonl says of a step.
struct Measured {
  json held_out{};  ///< {NAME_loss, NAME_standard_error, ...}
  json suites{};    ///< {SUITE: {METRIC: {value, low, high, count}}}
};
Measured measured_at(const std::string& run, int64_t step) {
  Measured measured;
  LogLines rows(run + "/metrics.jsonl");
  for (std::string line; rows.next(line);) {
    if (line.find("\"held_out\"") == std::string::npos && line.find("\"suites\"") == std::string::npos) continue;
    const auto row = parse_json(line);
    if (value_at(row, "/step") != step) continue;
    if (auto losses = value_at(row, "/held_out"); losses.is_object()) measured.held_out = std::move(losses);
    if (auto suites = value_at(row, "/suites"); suites.is_object()) measured.suites = std::move(suites);
  }
  return measured;
}

/// The task of a hub that a model does; empty: none of them.
std::string pipeline_of(const RunConfig& config) {
  using enum huggingface::Head;
  static const std::vector<std::pair<huggingface::Head, std::string>> known{{texts, "text-classification"},
                                                                            {tags, "token-classification"},
                                                                            {spans, "question-answering"},
                                                                            {choice, "multiple-choice"},
                                                                            {mlm, "fill-mask"},
                                                                            {lm, "text-generation"}};
  const auto heads = huggingface::heads_of(config.objectives);
  if (heads.empty()) return "feature-extraction";
  for (const auto& [head, name] : known)
    if (heads.contains(head) && (head != lm || backbone_of(config.model).is_decoder())) return name;
  return "";
}

/// The model that the weights of the first step are of; empty: they were drawn.
std::string base_of(const RunConfig& config, const json& provenance) {
  const auto imported = text_at(provenance, "/imported_from");
  return last_component(imported.empty() ? config.init.from : imported);
}

/// The scores of the test part for the leaderboards of a hub. Texts are strings of JSON, which are strings of YAML.
std::string index_of_results(const std::string& name, const std::string& task, const std::string& pipeline,
                             const TestResult& result) {
  const auto quoted = [](const std::string& text) { return json_text(json(printable(text))); };
  auto text = "model-index:\n- name: " + quoted(name) + "\n  results:\n  - task:\n      type: " + pipeline +
              "\n    dataset:\n      name: " + quoted(task) + "\n      type: " + quoted(task) +
              "\n      split: test\n    metrics:\n";
  for (const auto& score : result.scores)
    text += "    - type: " + score.metric + "\n      value: " + fixed(score.value, 4) + "\n";
  return text;
}

/// The keys that a hub reads.
std::string hub_keys(const RunConfig& config, const std::string& name, const json& provenance,
                     const std::optional<TestResult>& result) {
  std::string text =
      "---\n"
      "# To fill in, without the sign before it: a hub shows both, and is searched by them.\n"
      "# license:\n"
      "# language:\n"
      "library_name: transformers\n";
  const auto pipeline = pipeline_of(config), base = base_of(config, provenance);
  if (!pipeline.empty()) text += "pipeline_tag: " + pipeline + "\n";
  if (!base.empty()) text += "base_model: " + json_text(json(base)) + "  # a hub wants OWNER/NAME\n";
  text += "tags:\n- cloze\n";
  std::set<std::string> tags{huggingface::family_of(config.model).model_type};
  for (const auto& objective : config.objectives) tags.insert(kind_of(objective));
  for (const auto& tag : tags) text += "- " + tag + "\n";
  const auto type = pipeline.empty() ? "text2text-generation" : pipeline;
  if (result) text += index_of_results(name, config.task.name, type, *result);
  return text + "---\n";
}

/// How many parameters the class has, without the generator of a discriminator.
uint64_t parameters_of(const LoadedRun& run) {
  int64_t count = 0;
  for (const auto& [name, param] : collect_params(*run.network))
    if (!huggingface_names(run.config.model, name).empty()) count += param.value().numel();
  return static_cast<uint64_t>(count);
}

std::string loading(const std::string& name, const std::string& architecture, bool has_tokenizer) {
  const auto folder = "(" + json_text(json(name)) + ")";  // a string of JSON is one of Python
  const std::string classes = has_tokenizer ? "AutoTokenizer, " : "";
  return "```python\nfrom transformers import " + classes + architecture + "\n" +
         (has_tokenizer ? "tokenizer = AutoTokenizer.from_pretrained" + folder + "\n" : "") +
         "model = " + architecture + ".from_pretrained" + folder + "\n```\n";
}

/// Where the weights of the first step came from.
std::string first_weights(const RunConfig& config, const json& provenance) {
  const auto imported = text_at(provenance, "/imported_from"), branched = text_at(provenance, "/branched_from/run");
  if (!imported.empty()) return "imported: " + last_component(imported);
  if (!branched.empty()) return "a branch of the run " + last_component(branched);
  if (!config.init.from.empty()) return "the run " + last_component(config.init.from) + ", where they fit";
  return "drawn";
}

std::string data_of_training(const json& provenance, const std::string& noun) {
  const auto since = value_at(provenance, "/data/since_step");
  return concat(count_at(provenance, "/data/documents", noun), ", ", count_at(provenance, "/data/tokens", "token"),
                ", fingerprint ", text_at(provenance, "/data/fingerprint", not_recorded),
                since.is_number_integer() ? concat("; other data before step ", since.get<int64_t>()) : "");
}

/// What resumes changed in the midst of the training; empty without any.
std::string changes_of(const json& provenance) {
  std::string all;
  for (const auto& changes : history_of(provenance).changes) all += (all.empty() ? "" : "; ") + to_text(changes);
  return printable(all);
}

std::string training(const LoadedRun& run, const json& provenance) {
  const auto& config = run.config;
  const auto& state = run.state;
  std::string objectives;
  for (const auto& one : config.objectives) objectives += (objectives.empty() ? "" : " + ") + short_form(one);
  if (config.distil.is_on()) objectives += concat(" + distil, of ", last_component(config.distil.teacher));
  const auto phases = config.train.phases.size();
  const auto sequences = static_cast<uint64_t>(config.train.batch_size * config.train.accumulation);
  const auto rows = concat(counted(sequences, "row"), " a step, of up to ",
                           counted(static_cast<uint64_t>(config.data.max_seq_length), "token"),
                           phases > 0 ? concat("; other ones in ", counted(phases, "later phase")) : "");
  const auto tokens = concat(thousands(static_cast<uint64_t>(state.tokens)),
                             config.task.name.empty() ? concat(", of which losses predicted ",
                                                               thousands(static_cast<uint64_t>(state.predicted_tokens)))
                                                      : std::string());
  Table table{.title = "Training",
              .header = {"what", "value"},
              .rows = {{"text, its source and its licence", "to fill in"},
                       {"data", data_of_training(provenance, config.task.name.empty() ? "document" : "row")},
                       {"tokenizer", "fingerprint " + text_at(provenance, "/tokenizer", not_recorded)},
                       {"objectives", objectives},
                       {"first weights", first_weights(config, provenance)},
                       {"steps", thousands(static_cast<uint64_t>(state.step))},
                       {"tokens read", tokens},
                       {"FLOPs", digits(state.flops, 3)},
                       {"rows", rows},
                       {"optimizer", concat(rules_of(config.optimizer), ", peak learning rate ",
                                            digits(config.optimizer.learning_rate, 4))},
                       {"seed", concat(config.train.seed)}}};
  if (const auto changes = changes_of(provenance); !changes.empty()) table.rows.push_back({"changed", changes});
  return to_markdown(table);
}

/// `25.00 to 75.00`; empty without an interval.
std::string interval_words(const Score& score) {
  if (!score.interval) return "";
  return score_cell(score.interval->low, score.metric) + " to " + score_cell(score.interval->high, score.metric);
}

/// What the constant prediction reaches; NaN: it is not known.
double floor_of(const Score& score) { return score.floors.empty() ? std::nan("") : score.floors.front().second; }

/// The held-out losses of a step, each with its interval, accuracy and baseline; empty where there is none.
std::string held_out_losses(const json& held_out, int64_t step) {
  constexpr double quantile = 1.96;  // of the normal distribution, for 95 %
  Table table{.title = concat("Held-out losses at step ", step),
              .header = {"objective", "loss", "95 % interval", "accuracy %", "baseline"}};
  const auto number = [&](const std::string& key) {
    const auto value = held_out.find(key);
    return value != held_out.end() && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
  };
  for (const auto& [key, value] : held_out.items()) {
    if (!value.is_number() || !key.ends_with("_loss") || key.ends_with("_baseline_loss")) continue;
    const auto name = key.substr(0, key.size() - 5);
    const auto loss = value.get<double>();
    const auto error = number(name + "_standard_error"), accuracy = number(name + "_accuracy"),
               baseline = number(name + "_baseline_loss");
    table.rows.push_back(
        {printable(name), score_cell(loss, "loss"),
         error ? interval_words(
                     {.metric = "loss", .interval = Bounds{loss - quantile * *error, loss + quantile * *error}})
               : "",
         accuracy ? score_cell(*accuracy, "accuracy") : "", baseline ? score_cell(*baseline, "loss") : ""});
  }
  if (table.rows.empty()) return "";
  return to_markdown(table) +
         "\nIn nats a prediction, on documents that were held out of the training text. Intervals are those of this\n"
         "one run over sequences; how runs of other seeds differ is not in them. The baseline reads nothing.\n";
}

/// The answers to suites at the same step; empty where there are none.
std::string suite_answers(const json& suites) {
  Table table{.title = "Suites", .header = {"suite", "figure", "value", "95 % interval", "items"}};
  for (const auto& [suite, metrics] : suites.items()) {
    if (!metrics.is_object()) continue;
    for (const auto& [metric, entry] : metrics.items()) {
      const auto score = score_of(metric, entry);
      if (!score.is_defined()) continue;
      table.rows.push_back({printable(suite), printable(metric_words(metric)), score_cell(score.value, metric),
                            interval_words(score),
                            entry.contains("count") ? thousands(static_cast<uint64_t>(score.count)) : ""});
    }
  }
  return table.rows.empty() ? "" : to_markdown(table);
}

/// What the test part of a task says: its scores beside the floor, and whether the run learned anything.
std::string test_part(const std::string& task, const TestResult& result) {
  Table table{.title = concat("Test part of ", printable(in_one_line(task))),
              .header = {"figure", "value", "95 % interval", result.floor_name, "n"}};
  for (const auto& score : result.scores)
    table.rows.push_back({metric_words(score.metric), score_cell(score.value, score.metric), interval_words(score),
                          std::isfinite(floor_of(score)) ? score_cell(floor_of(score), score.metric) : "",
                          thousands(static_cast<uint64_t>(score.count))});
  const auto& first = result.scores.front();
  auto text =
      to_markdown(table) + concat("\nFigures are of this one run; how runs of other seeds differ is not in the ",
                                  "intervals.\nThe column ", result.floor_name, " is ", result.floor_words, ".\n");
  if (result.chosen)
    text += concat("The step was chosen by ", first.metric, " ", score_cell(*result.chosen, first.metric),
                   is_proportion(first.metric) ? " %" : "", " on the valid part.\n");
  if (!result.learned)
    text += concat("\n**It did not learn**: its ", first.metric,
                   " on the valid part is not shown to be better than that of ", result.floor_name, ".\n");
  else if (first.interval && first.interval->low <= floor_of(first) && floor_of(first) <= first.interval->high)
    text += concat("\nThe interval holds the floor: these items do not show that it is better than ", result.floor_name,
                   ".\n");
  for (const auto& note : result.notes) text += "\n- " + escaped_markdown(printable(in_one_line(note)));
  return text + (result.notes.empty() ? "" : "\n");
}

/// How a fine-tuned run reads texts.
std::string reading(const std::vector<ReadingNote>& notes) {
  std::string text = "## Texts\n\n";
  for (const auto& note : notes) text += "- " + escaped_markdown(printable(in_one_line(note.sentence))) + "\n";
  return notes.empty() ? "" : text;
}

/// The command that began the run, and what it ran with.
std::string making(const json& provenance) {
  const auto command = in_one_line(text_at(provenance, "/command", not_recorded));
  const auto made_by = printable(history_of(provenance).made_by);
  const auto versions = concat(
      made_by.empty() ? "program: not recorded" : made_by, "; commit ", text_at(provenance, "/commit", not_recorded),
      "; compiler ", text_at(provenance, "/compiler", not_recorded), "; instruction set ",
      text_at(provenance, "/machine/isa", not_recorded), "; begun ", text_at(provenance, "/date", not_recorded));
  return "## Command and versions\n\nThe run began with\n\n    " + command + "\n\n" + escaped_markdown(versions) +
         ".\nExported by Cloze " CLOZE_VERSION ".\n";
}

std::string not_evaluated(const LoadedRun& run, bool is_judged) {
  const auto& task = run.config.task.name;
  const auto unknown = task.empty() ? "- The loss on held-out text: none was measured at this step.\n"
                                    : "- The test part of its task: nothing is recorded of it at this step.\n";
  const auto longest = backbone_of(run.config.model).max_input_length();
  const bool has_limit = longest < BackboneConfig::unlimited_length;
  return concat("## Not evaluated\n\n", is_judged ? "" : unknown,
                task.empty() ? "- Tasks: no score of GLUE or its like, and nothing after fine-tuning.\n"
                             : "- Tasks: none but that which it was fine-tuned on.\n",
                "- Text of other kinds, domains and languages than that of the training",
                has_limit ? concat("; inputs of more than ", thousands(static_cast<uint64_t>(longest)),
                                   " tokens are not possible.\n")
                          : std::string(".\n"),
                "- What it repeats of its text: personal data, whole passages, insults, prejudice.\n",
                "- Other seeds: this is one run.\n");
}

}  // namespace

std::string model_card(const LoadedRun& run, const std::string& name, const std::string& architecture) {
  const auto provenance = json_of_record(run.folder + "/provenance.json");
  const auto step = run.state.step;
  auto measured = measured_at(run.folder, step);
  const bool is_trained = step > 0;
  const auto& task = run.config.task.name;
  const auto how =
      !task.empty() ? "fine-tuned with Cloze on the task " + escaped_markdown(printable(in_one_line(task)))
      : is_trained  ? "pretrained with Cloze"
                    : "not trained by Cloze; first weights " + escaped_markdown(first_weights(run.config, provenance));
  const auto prepared = exported_task(run);
  const auto result = prepared ? test_result(run, *prepared) : std::nullopt;
  if (measured.suites.is_object()) measured.suites.erase(task + "-valid");  // it chose the step
  const auto losses = task.empty() ? held_out_losses(measured.held_out, step) : "";
  const auto of_test = result ? test_part(task, *result) : "", suites = suite_answers(measured.suites),
             texts = prepared ? reading(reading_notes(run, prepared->task.config)) : "";
  auto card = hub_keys(run.config, name, provenance, result) + "\n# " + escaped_markdown(printable(name)) + "\n\n" +
              architecture + " of " + counted(parameters_of(run), "parameter") + ", " + how + ".\n\n" +
              loading(name, architecture, run.has_tokenizer) + "\n";
  if (is_trained) card += training(run, provenance) + "\n";
  for (const auto& part : {texts, of_test, losses, suites})
    if (!part.empty()) card += part + "\n";
  if (is_trained) card += making(provenance) + "\n";
  return card + not_evaluated(run, !losses.empty() || !of_test.empty());
}

}  // namespace cloze
