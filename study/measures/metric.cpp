#include "study/measures/metric.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <set>
#include <utility>

#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/text.h"
#include "run/config/evaluation_protocol.h"
#include "run/records/suite_record.h"
#include "run/records/suite_units.h"
#include "study/measures/run_files.h"
#include "study/measures/task_value.h"

namespace cloze {

namespace {

using nlohmann::json;

// -- A held-out loss -------------------------------------------------------------------------------------------------

MetricTraits traits_of(const LossMetric& loss) {
  const bool is_of_labels = loss.name.starts_with("nsp") || loss.name.starts_with("sop");
  return {.name = loss.name,
          .title = concat("held-out ", loss.name, " loss"),
          .unit = unit_words(loss.unit),
          .floor = is_of_labels ? "the more frequent label" : "word frequencies",
          .has_curve_in_unit = loss.unit == LossUnit::nats,
          .most_margin = 2};
}

MetricValue value_of(const LossMetric& loss, const std::string& folder, const std::string& remedy) {
  const auto file = read_held_out(folder, remedy);
  const auto losses = file.losses.find(loss.name);
  const auto path = folder + "/held_out.json";
  require<DataError>(losses != file.losses.end(), path, ": has no loss of '", loss.name,
                     "', by which runs are compared; train the run again");
  const auto& [examples, bytes] = losses->second;
  MetricValue value{.examples = examples, .measured = file.measured, .text = file.text};
  if (loss.unit == LossUnit::bits_per_byte) {
    require<DataError>(!bytes.empty(), path,
                       ": has no byte counts, since its tokens were prepared without them; prepare the text again with "
                       "--force, or compare in nats");
    value.examples.count = bytes;
    for (auto& count : value.examples.count) count *= std::numbers::ln2;
    value.by_nats = value.examples.value() / examples.value();
  }
  value.value = value.examples.value();
  return value;
}

std::optional<CurveValue> curve_value(const LossMetric& loss, const json& row) {
  if (!row.contains("held_out_loss") || !row["held_out_loss"].is_number()) return std::nullopt;
  const bool is_any = loss.name.empty() || !row.contains("held_out");
  const double value =
      is_any ? row["held_out_loss"].get<double>() : number_at(row, "held_out", loss.name + "_loss", std::nan(""));
  if (std::isnan(value)) return std::nullopt;
  return CurveValue{.value = value, .floor = number_at(row, "held_out", loss.name + "_baseline_loss", 0)};
}

std::string row_mark(const LossMetric&) { return "\"held_out_loss\""; }

void ask(RunConfig& run, const LossMetric& loss) {
  run.evaluation.objectives.push_back(parse_objective(loss.name, "metric"));
}

// -- A score of a suite ----------------------------------------------------------------------------------------------

MetricTraits traits_of(const SuiteMetric& suite) {
  const auto name = concat(suite.suite, " ", suite.name);
  const bool is_fraction = is_proportion(suite.name);
  return {.name = name,
          .title = name,
          .unit = is_fraction                 ? "points"
                  : suite.name == "surprisal" ? "nats"
                                              : "",
          .higher_is_better = is_higher_better(suite.name),
          .floor = "guessing",
          .most_margin = is_fraction ? 100.0 : 2.0,
          .least_margin = is_fraction ? 0.1 : 0};
}

/// What a row of metrics.jsonl or a summary.json says of a score of a suite.
std::optional<double> suite_value(const json& fields, const std::string& suite, const std::string& metric) {
  const json* at = &fields;
  for (const std::string& key : {std::string("suites"), suite, metric, std::string("value")}) {
    if (!at->is_object() || !at->contains(key)) return std::nullopt;
    at = &(*at)[key];
  }
  return at->is_number() ? std::optional(at->get<double>()) : std::nullopt;
}

/// The suites.json of a run directory.
SuiteRecord read_suites(const std::string& folder, const std::string& remedy) {
  const auto path = folder + "/suites.json";
  const auto fields = sealed_fields(path, "suites", "the run cannot be compared by a suite", remedy);
  const auto damaged = [&](bool fine) { require<DataError>(fine, path, ": is damaged or was edited; ", remedy); };
  SuiteRecord record;
  try {
    record = fields.get<SuiteRecord>();
  } catch (const std::exception&) {
    damaged(false);
  }
  const auto summary = read_summary(folder);
  for (const auto& [suite, scores] : record.suites)
    for (const auto& [name, score] : scores) {
      damaged(score.sum.size() == score.count.size());
      const auto own = suite_value(summary, suite, name);
      require<DataError>(!own || *own == score.value, path, ": is of another run, with ", suite, " ", name, " ",
                         significant(score.value, 7), " where summary.json has ", significant(own.value_or(0), 7), "; ",
                         remedy);
    }
  return record;
}

/// Items that are right or wrong, of which a score is a mean; 0: it is no share. Files of earlier versions have the
/// numbers of clusters alone.
int64_t share_items(const RecordedScore& score, const std::string& name) {
  if (!is_proportion(name)) return 0;
  if (score.items > 0) return score.items;
  return static_cast<int64_t>(std::accumulate(score.count.begin(), score.count.end(), 0.0));
}

MetricValue value_of(const SuiteMetric& metric, const std::string& folder, const std::string& remedy) {
  const auto record = read_suites(folder, remedy);
  const auto suite = record.suites.find(metric.suite);
  require<DataError>(suite != record.suites.end(), folder, "/suites.json: has no answers to ", metric.suite,
                     "; the log of the run says why; ", remedy);
  const auto found = suite->second.find(metric.name);
  std::vector<std::string> names;
  for (const auto& [name, score] : suite->second) names.push_back(name);
  require<DataError>(found != suite->second.end(), folder, "/suites.json: ", metric.suite, " has no ", metric.name,
                     "; its figures are ", listed(names));
  const auto& score = found->second;
  MetricValue value{.value = in_unit(score.value, metric.name),
                    .examples = {.sum = score.sum, .count = score.count, .items = share_items(score, metric.name)},
                    .measured = metric.suite,
                    .text = score.items_hash,
                    .floor = in_unit(score.floor, metric.name)};
  for (auto& sum : value.examples.sum) sum = in_unit(sum, metric.name);
  return value;
}

std::optional<CurveValue> curve_value(const SuiteMetric& metric, const json& row) {
  const auto value = suite_value(row, metric.suite, metric.name);
  if (!value) return std::nullopt;
  return CurveValue{.value = in_unit(*value, metric.name)};
}

std::string row_mark(const SuiteMetric&) { return "\"suites\""; }

void ask(RunConfig& run, const SuiteMetric& metric) {
  auto& suites = run.evaluation.suites;
  const auto is_named = [&](const std::string& path) { return suite_name(path) == metric.suite; };
  if (std::ranges::none_of(suites, is_named)) suites.push_back(metric.path);
}

// -- A score of a task -----------------------------------------------------------------------------------------------

MetricTraits traits_of(const TaskMetric& task) {
  return {.name = task.task,
          .title = concat(task.task, " ", task.name.empty() ? "figure" : task.name, " after fine-tuning"),
          .unit = task.is_error ? "" : "points",
          .higher_is_better = !task.is_error,
          .floor = task.floor,
          .has_curve_in_unit = false,
          .most_margin = task.is_error ? 1e6 : 100.0,
          .least_margin = task.is_error ? 0 : 0.05};
}

MetricValue value_of(const TaskMetric& task, const std::string& folder, const std::string& remedy) {
  const auto runs = task.finetunings.find(folder);
  require<DataError>(runs != task.finetunings.end() && !runs->second.empty(), folder, ": is not fine-tuned on ",
                     task.task, "; ", remedy);
  return value_of_finetunings(runs->second, task.name);
}

/// The names of the losses in a row of metrics.jsonl: `rtd + generator`.
std::string names_of_losses(const json& row) {
  const std::string tail = "_loss", of_baseline = "_baseline" + tail;
  std::string names;
  const auto losses = row.value("held_out", json::object());
  for (const auto& [key, value] : losses.items())
    if (key.ends_with(tail) && !key.ends_with(of_baseline))
      names += (names.empty() ? "" : " + ") + key.substr(0, key.size() - tail.size());
  return names;
}

/// While it is trained a run has the losses that it is trained with, whose floor is none of the score.
std::optional<CurveValue> curve_value(const TaskMetric&, const json& row) {
  const auto loss = curve_value(LossMetric{.name = ""}, row);
  return loss ? std::optional(CurveValue{.value = loss->value, .loss = names_of_losses(row)}) : std::nullopt;
}
std::string row_mark(const TaskMetric&) { return row_mark(LossMetric{}); }

/// A run is judged after its training, by the runs that `cloze finetune` makes of it.
void ask(RunConfig&, const TaskMetric&) {}

}  // namespace

MetricTraits traits_of(const StudyMetric& metric) {
  return std::visit([](const auto& kind) { return traits_of(kind); }, metric);
}

MetricValue value_of(const StudyMetric& metric, const std::string& folder, const std::string& remedy) {
  return std::visit([&](const auto& kind) { return value_of(kind, folder, remedy); }, metric);
}

std::optional<CurveValue> curve_value(const StudyMetric& metric, const json& row) {
  return std::visit([&](const auto& kind) { return curve_value(kind, row); }, metric);
}

std::string row_mark(const StudyMetric& metric) {
  return std::visit([](const auto& kind) { return row_mark(kind); }, metric);
}

void ask(RunConfig& run, const StudyMetric& metric) {
  std::visit([&](const auto& kind) { ask(run, kind); }, metric);
}

bool is_better(double value, double other, const StudyMetric& metric) {
  return traits_of(metric).higher_is_better ? value > other : value < other;
}

std::string value_words(const StudyMetric& metric) {
  if (std::holds_alternative<LossMetric>(metric)) return "held-out loss";
  const auto facts = traits_of(metric);
  return facts.unit.empty() ? facts.name : concat(facts.name, " [", facts.unit, "]");
}

int64_t documents_in(const MetricValue& value) {
  const auto& documents = value.examples.documents;
  if (documents.empty()) return std::ssize(value.examples.sum);
  return std::ssize(std::set<uint64_t>(documents.begin(), documents.end()));
}

bool is_development(uint64_t document) {
  const char first = hash_hex(concat("held-out document ", document)).front();
  return first >= '0' && first <= '3';  // of sixteen digits
}

MetricValue part_of(MetricValue value, HeldOutPart part, const std::string& folder) {
  if (part == HeldOutPart::whole) return value;
  const auto examples = std::exchange(value.examples, {});
  for (size_t e = 0; e < examples.sum.size(); ++e) {
    const uint64_t document = examples.documents.empty() ? e : examples.documents[e];
    if (is_development(document) != (part == HeldOutPart::development)) continue;
    value.examples.sum.push_back(examples.sum[e]);
    value.examples.count.push_back(examples.count[e]);
    value.examples.documents.push_back(document);
  }
  require<DataError>(!value.examples.sum.empty(), folder, ": has ", examples.sum.size(),
                     " held-out examples, none of which is in the part for ",
                     part == HeldOutPart::development ? "tuning" : "the verdict", "; score more with metric.sequences");
  if (examples.items > 0)
    value.examples.items = examples.items * std::ssize(value.examples.sum) / std::ssize(examples.sum);
  value.value = value.examples.value();
  return value;
}

StudyMetric metric_of(const MetricName& named, const std::string& where) {
  require<ConfigError>(named.objective.empty() || named.suite.empty(), where,
                       " names a loss (objective: ", named.objective, ") and a suite (suite: ", named.suite,
                       "); keep one of them");
  require<ConfigError>(named.task.empty() || (named.objective.empty() && named.suite.empty()), where,
                       " names a task (task: ", named.task, ") and a loss or a suite; keep one of them");
  require<ConfigError>(named.metric.empty() || !named.suite.empty() || !named.task.empty(), where, ".figure is ",
                       named.metric, ", a figure of a suite or a task; name that one with `suite:` or `task:`");
  if (!named.task.empty()) {
    require<ConfigError>(named.unit == LossUnit::nats, where, ".unit is ", named.unit,
                         ", a unit of losses; figures of tasks are in points, so leave it out");
    return TaskMetric{.task = named.task, .name = named.metric};
  }
  if (!named.suite.empty()) {
    require<ConfigError>(named.unit == LossUnit::nats, where, ".unit is ", named.unit,
                         ", a unit of losses; figures of ", "suites have their own, so leave it out");
    return SuiteMetric{.suite = suite_name(named.suite),
                       .name = named.metric.empty() ? "accuracy" : named.metric,
                       .path = named.suite};
  }
  const auto name = named.objective.empty() ? "mlm" : named.objective;
  const auto objective = parse_objective(name, where + ".objective");
  require<ConfigError>(named.unit == LossUnit::nats || as_kind(objective).is_generative(), where, ".unit is ",
                       named.unit, ", and ", name,
                       " predicts a part of the text only; choose a generative objective such as clm, or nats");
  return LossMetric{.name = short_form(objective), .unit = named.unit};
}

void check_margin(double margin, const StudyMetric& metric, const std::string& where) {
  const auto facts = traits_of(metric);
  require<ConfigError>(margin <= facts.most_margin, where, ".better_by is ", shortest(margin), ", and a margin of ",
                       facts.name, " is ", shortest(facts.most_margin), facts.unit.empty() ? "" : " " + facts.unit,
                       " at most; give it in ", facts.unit.empty() ? "the unit of the figure" : facts.unit);
  require<ConfigError>(margin == 0 || margin >= facts.least_margin, where, ".better_by is ", shortest(margin),
                       ", and margins of ", facts.name, " are in points: write ", shortest(100 * margin), " if ",
                       shortest(margin), " was meant as a fraction, else ", shortest(facts.least_margin), " at least");
}

}  // namespace cloze
