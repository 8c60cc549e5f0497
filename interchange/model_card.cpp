#include "interchange/model_card.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"
#include "core/report/table.h"
#include "core/text.h"
#include "interchange/huggingface/family.h"
#include "interchange/huggingface_parameters.h"
#include "run/config/objective_short_form.h"
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
    if (auto found = value_at(row, "/held_out"); found.is_object()) measured.held_out = std::move(found);
    if (auto found = value_at(row, "/suites"); found.is_object()) measured.suites = std::move(found);
  }
  return measured;
}

/// The keys that a hub reads. None of their values comes from a text of a record.
std::string hub_keys(const RunConfig& config) {
  std::string text =
      "---\n"
      "# To fill in, without the sign before it: a hub shows both, and is searched by them.\n"
      "# license:\n"
      "# language:\n"
      "library_name: transformers\n"
      "tags:\n"
      "- cloze\n";
  std::set<std::string> tags{huggingface::family_of(config.model).model_type};
  for (const auto& objective : config.objectives) tags.insert(kind_of(objective));
  for (const auto& tag : tags) text += "- " + tag + "\n";
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

std::string data_of_training(const json& provenance) {
  const auto since = value_at(provenance, "/data/since_step");
  return concat(count_at(provenance, "/data/documents", "document"), ", ",
                count_at(provenance, "/data/tokens", "token"), ", fingerprint ",
                text_at(provenance, "/data/fingerprint", not_recorded),
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
  const auto phases = config.train.phases.size();
  const auto sequences = static_cast<uint64_t>(config.train.batch_size * config.train.accumulation);
  const auto rows = concat(counted(sequences, "row"), " a step, of up to ",
                           counted(static_cast<uint64_t>(config.data.max_seq_length), "token"),
                           phases > 0 ? concat("; other ones in ", counted(phases, "later phase")) : "");
  const auto tokens = concat(thousands(static_cast<uint64_t>(state.tokens)), ", of which losses predicted ",
                             thousands(static_cast<uint64_t>(state.predicted_tokens)));
  Table table{.title = "Training",
              .header = {"what", "value"},
              .rows = {{"text, its source and its licence", "to fill in"},
                       {"data", data_of_training(provenance)},
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

std::string interval(double low, double high, const std::string& metric) {
  return figure_cell(low, metric) + " to " + figure_cell(high, metric);
}

/// The held-out losses of a step, each with its interval, accuracy and baseline; empty where there is none.
std::string held_out_losses(const json& held_out, int64_t step) {
  constexpr double quantile = 1.96;  // of the normal distribution, for 95 %
  Table table{.title = concat("Held-out losses at step ", step),
              .header = {"objective", "loss", "95 % interval", "accuracy %", "baseline"}};
  const auto number = [&](const std::string& key) {
    const auto found = held_out.find(key);
    return found != held_out.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
  };
  for (const auto& [key, value] : held_out.items()) {
    if (!value.is_number() || !key.ends_with("_loss") || key.ends_with("_baseline_loss")) continue;
    const auto name = key.substr(0, key.size() - 5);
    const auto loss = value.get<double>();
    const auto error = number(name + "_standard_error"), accuracy = number(name + "_accuracy"),
               baseline = number(name + "_baseline_loss");
    table.rows.push_back({printable(name), figure_cell(loss, "loss"),
                          error ? interval(loss - quantile * *error, loss + quantile * *error, "loss") : "",
                          accuracy ? figure_cell(*accuracy, "accuracy") : "",
                          baseline ? figure_cell(*baseline, "loss") : ""});
  }
  if (table.rows.empty()) return "";
  return to_markdown(table) +
         "\nIn nats a prediction, on documents that were held out of the training text. Intervals are those of this\n"
         "one run over sequences; how runs of other seeds differ is not in them. The baseline reads nothing.\n";
}

/// The answers to suites at the same step; empty where there are none.
std::string suite_answers(const json& suites) {
  Table table{.title = "Suites", .header = {"suite", "figure", "value", "95 % interval", "items"}};
  for (const auto& [suite, figures] : suites.items()) {
    if (!figures.is_object()) continue;
    for (const auto& [metric, figure] : figures.items()) {
      const auto value = value_at(figure, "/value"), low = value_at(figure, "/low"), high = value_at(figure, "/high"),
                 count = value_at(figure, "/count");
      if (!value.is_number()) continue;
      const bool has_interval = low.is_number() && high.is_number();
      table.rows.push_back({printable(suite), printable(metric_words(metric)), figure_cell(value.get<double>(), metric),
                            has_interval ? interval(low.get<double>(), high.get<double>(), metric) : "",
                            count.is_number_unsigned() ? thousands(count.get<uint64_t>()) : ""});
    }
  }
  return table.rows.empty() ? "" : to_markdown(table);
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

std::string not_evaluated(const LoadedRun& run, bool has_losses) {
  const auto longest = backbone_of(run.config.model).max_input_length();
  const bool has_limit = longest < BackboneConfig::unlimited_length;
  return concat(
      "## Not evaluated\n\n", has_losses ? "" : "- The loss on held-out text: none was measured at this step.\n",
      run.config.task.name.empty() ? "- Tasks: no score of GLUE or its like, and nothing after fine-tuning.\n"
                                   : "- Tasks: none but that which it was fine-tuned on.\n",
      "- Text of other kinds, domains and languages than that of the training",
      has_limit
          ? concat("; inputs of more than ", thousands(static_cast<uint64_t>(longest)), " tokens are not possible.\n")
          : std::string(".\n"),
      "- What it repeats of its text: personal data, whole passages, insults, prejudice.\n",
      "- Other seeds: this is one run.\n");
}

}  // namespace

std::string model_card(const LoadedRun& run, const std::string& name, const std::string& architecture) {
  const auto provenance = json_of_record(run.folder + "/provenance.json");
  const auto step = run.state.step;
  const auto measured = measured_at(run.folder, step);
  const auto losses = held_out_losses(measured.held_out, step), suites = suite_answers(measured.suites);
  const bool is_trained = step > 0;
  const auto& task = run.config.task.name;
  const auto how =
      !task.empty() ? "fine-tuned with Cloze on the task " + escaped_markdown(printable(in_one_line(task)))
      : is_trained  ? "pretrained with Cloze"
                    : "not trained by Cloze; first weights " + escaped_markdown(first_weights(run.config, provenance));
  auto card = hub_keys(run.config) + "\n# " + escaped_markdown(printable(name)) + "\n\n" + architecture + " of " +
              counted(parameters_of(run), "parameter") + ", " + how + ".\n\n" +
              loading(name, architecture, run.has_tokenizer) + "\n";
  if (is_trained) card += training(run, provenance) + "\n";
  for (const auto& part : {losses, suites})
    if (!part.empty()) card += part + "\n";
  if (is_trained) card += making(provenance) + "\n";
  return card + not_evaluated(run, !losses.empty());
}

}  // namespace cloze
