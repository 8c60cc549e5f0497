#include "study/plan/plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/text.h"
#include "data/store/manifest.h"
#include "data/store/read_mixture.h"
#include "study/plan/task_terms.h"
#include "tasks/scores/task_metric.h"

namespace cloze {

namespace {

bool is_prepared(const std::string& folder) { return std::filesystem::exists(folder + "/manifest.json"); }

/// The held-out text of prepared tokens; none where they are not prepared yet.
std::optional<SplitText> held_out_text(const std::string& folder) {
  if (!is_prepared(folder)) return std::nullopt;
  const auto manifest = read_manifest(folder);
  return manifest.splits.contains("valid") ? std::optional(split_text(manifest, "valid")) : std::nullopt;
}

/// Counts the held-out documents. Throws ConfigError for arms that are scored on different text, where the metric needs
/// the same.
void compare_texts(Plan& plan, const std::vector<RunConfig>& configs) {
  const auto needs_same = std::ranges::any_of(plan.metrics(), [](const StudyMetric& metric) {
    const auto* loss = std::get_if<LossMetric>(&metric);
    return loss && loss->unit == LossUnit::nats;
  });
  std::map<std::string, std::optional<SplitText>> texts;  // by folder
  std::optional<SplitText> first;
  std::string first_arm;
  for (size_t i = 0; i < configs.size(); ++i) {
    const auto& folder = configs[i].data.tokens;
    if (!texts.contains(folder)) texts[folder] = held_out_text(folder);
    const auto& text = texts[folder];
    if (!text) continue;
    if (!first) {
      first = text;
      first_arm = plan.arms[i].name;
    }
    require<ConfigError>(!needs_same || text->fingerprint == first->fingerprint, "arms '", first_arm, "' (",
                         first->documents, " held-out documents) and '", plan.arms[i].name, "' (", text->documents,
                         ") have different held-out tokens or tokenizers, so that their losses cannot be compared; "
                         "prepare all texts with one --tokenizer and one --valid, or compare a generative loss "
                         "in bits per byte (metric.unit)");
  }
  if (!first) return;
  plan.documents = static_cast<int64_t>(first->documents);
  for (uint64_t document = 0; document < first->documents; ++document) plan.development += is_development(document);
}

/// Throws ConfigError for arms whose losses are taken over other rows.
void compare_rows(const Plan& plan, const std::vector<RunConfig>& configs) {
  const auto is_loss = [](const StudyMetric& metric) { return std::holds_alternative<LossMetric>(metric); };
  if (std::ranges::none_of(plan.metrics(), is_loss)) return;
  const auto& first = configs[0].evaluation;
  for (size_t i = 1; i < configs.size(); ++i) {
    const auto& other = configs[i].evaluation;
    require<ConfigError>(other.max_seq_length == first.max_seq_length && other.packing == first.packing, "arms '",
                         plan.arms[0].name, "' and '", plan.arms[i].name, "' are scored on rows of ",
                         first.max_seq_length, " tokens, packing ", first.packing, ", and of ", other.max_seq_length,
                         " tokens, packing ", other.packing,
                         ", so that their losses cannot be compared; give evaluation.max_seq_length and "
                         "evaluation.packing under `set:`");
  }
}

/// Throws ConfigError for arms that ask other items of the suites by which they are compared.
void compare_suites(const Plan& plan, const std::vector<RunConfig>& configs) {
  const auto is_suite = [](const StudyMetric& metric) { return std::holds_alternative<SuiteMetric>(metric); };
  if (std::ranges::none_of(plan.metrics(), is_suite)) return;
  for (size_t i = 1; i < configs.size(); ++i)
    require<ConfigError>(
        configs[i].evaluation.suite_items == configs[0].evaluation.suite_items, "arms '", plan.arms[0].name, "' and '",
        plan.arms[i].name, "' are compared by a suite and answer different items of it (evaluation.suite_items: ",
        configs[0].evaluation.suite_items, " and ", configs[i].evaluation.suite_items, "); give it under `set:`");
}

/// What the file of a task says of its score. Throws ConfigError for a task that the study does not have. `where`: the
/// key of the metric.
StudyMetric with_task(const StudyMetric& metric, const StudyConfig& study, const std::string& file,
                      const std::string& where) {
  const auto* named = std::get_if<TaskMetric>(&metric);
  if (!named) return metric;
  std::vector<std::string> names;
  for (auto& known : task_metrics(study, file)) {
    names.push_back(known.task);
    if (known.task != named->task) continue;
    if (named->name.empty()) return known;
    known.name = named->name;
    known.is_error = is_error(named->name);
    return known;
  }
  fail<ConfigError>(where, ".task is ", named->task, ", and ",
                    names.empty() ? "the study has no tasks; name their files by `tasks: {files: [...]}`"
                                  : "the tasks are " + listed(names) + did_you_mean(named->task, names));
}

/// Throws ConfigError where a search could not choose on a part of the held-out text.
void check_choosable(const Plan& plan) {
  const auto* suite = std::get_if<SuiteMetric>(&plan.metric);
  require<ConfigError>(!suite || suite->name.ends_with("accuracy"), plan.file, ": ", metric_name(plan),
                       " is no mean of items, so that a search cannot choose on a part of them; decide by an accuracy "
                       "or a loss, or name the values in arms");
  require<ConfigError>(suite || plan.documents == 0 || plan.development >= fewest_for_choosing, plan.file,
                       ": a search chooses on ", plan.development, " of the ", plan.documents,
                       " held-out documents, which the verdict does not see; ", fewest_for_choosing,
                       " are needed: prepare the text with a larger --held-out, or name the values in arms");
}

}  // namespace

std::vector<StudyMetric> metrics_of(const StudyConfig& study, const std::string& file) {
  const auto place = file + ": metric";
  std::vector<StudyMetric> metrics{with_task(metric_of(study.metric, place), study, file, place)};
  check_margin(study.metric.better_by, metrics.front(), place);
  std::set<std::string> names{traits_of(metrics.front()).name};
  for (size_t i = 0; i < study.secondary.size(); ++i) {
    const auto where = concat(file, ": secondary.", i);
    const auto& named = study.secondary[i];
    require<ConfigError>(!named.objective.empty() || !named.suite.empty() || !named.task.empty(), where,
                         " names no metric; give an `objective`, a `suite` or a `task`");
    metrics.push_back(with_task(metric_of(named, where), study, file, where));
    const auto name = traits_of(metrics.back()).name;
    require<ConfigError>(names.insert(name).second, where, ": ", name,
                         " is a metric of the study already; keep one of them");
  }
  const bool is_of_loss = std::holds_alternative<LossMetric>(metrics.front());
  require<ConfigError>(study.probe_head.share == 0 || (metrics.size() == 1 && is_of_loss), file,
                       ": probe_head gives every arm a head for one held-out loss, and ",
                       metrics.size() == 1 ? traits_of(metrics.front()).name : "`secondary`",
                       " needs another; compare by that loss alone, or leave probe_head out");
  return metrics;
}

void check_mixtures(const Plan& plan, const std::vector<RunConfig>& configs) {
  for (size_t i = 0; i < configs.size(); ++i) {
    const auto& data = configs[i].data;
    const auto is_here = [](const MixturePart& part) { return is_prepared(part.tokens); };
    if (!is_prepared(data.tokens) || !std::ranges::all_of(data.mixture, is_here)) continue;
    try {
      read_mixture(data);
    } catch (const DataError& e) {
      fail<DataError>("arm '", plan.arms[i].name, "': ", e.what());
    }
  }
}

void compare_scoring(Plan& plan, const std::vector<RunConfig>& configs) {
  compare_texts(plan, configs);
  compare_rows(plan, configs);
  compare_suites(plan, configs);
  if (plan.part == HeldOutPart::development) check_choosable(plan);
}

}  // namespace cloze
