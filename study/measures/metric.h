#pragma once
// What runs are compared by, and what a finished run is worth by it. A kind of metric is a struct with a function of
// each name below; the variant is all of them.
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/config/config.h"
#include "run/config/config.h"
#include "study/statistics/statistics.h"

namespace cloze {

/// What a loss is divided by.
enum class LossUnit { nats, bits_per_byte };
constexpr auto choices(LossUnit) {
  return std::array{Choice{LossUnit::nats, "nats", "the mean over predictions, for arms with one tokenizer"},
                    Choice{LossUnit::bits_per_byte, "bits_per_byte",
                           "bits by byte of the source text of the predicted tokens, over the whole held-out text, for "
                           "arms with different tokenizers"}};
}

/// A score of runs: a held-out loss, or what they answer to a suite.
struct MetricName {
  std::string objective{};
  LossUnit unit = LossUnit::nats;
  std::string suite{}, task{}, metric{};
};

template <class V>
void describe(V& v, MetricName& c) {
  v("objective", c.objective,
    "a held-out loss, in short form: KIND[:SHARE][,KEY=VALUE]..., for instance mlm, mlm:0.4 or mlm,unit=word; scored "
    "for every arm on the same text with the same masks, whatever it was trained on; empty = mlm, without a suite");
  v("unit", c.unit, "unit of the loss");
  v("suite", c.suite, "instead of a loss: an evaluation suite that every run answers at its end, as evaluation.suites");
  v("task", c.task,
    "instead of a loss: one of the `tasks`, on which every run is fine-tuned; its figure on the test part");
  v("figure", c.metric,
    "figure of the suite or the task, such as accuracy, micro_accuracy or spearman; empty = accuracy");
}

/// The name of a unit in a report.
inline std::string unit_words(LossUnit unit) { return unit == LossUnit::nats ? "nats" : "bits per byte"; }

/// A held-out loss.
struct LossMetric {
  std::string name = "mlm";  ///< in its shortest form, as files of runs name it; empty: whatever a run is evaluated by
  LossUnit unit = LossUnit::nats;
};

/// A score of an evaluation suite at the end of a run.
struct SuiteMetric {
  std::string suite;   ///< name of the suite, as files of runs have it
  std::string name;    ///< of its metric
  std::string path{};  ///< as evaluation.suites names it
};

/// The score of a task on its test part: the mean over the fine-tunings of a run.
struct TaskMetric {
  std::string task;
  std::string name{};     ///< of its metric; empty: that which chooses the best step
  bool is_error = false;  ///< less of it is better
  std::string floor{};    ///< `majority`, `mean`, `one tag`, `no answer`
  /// Finished fine-tunings by the folder of their run (study/measures/task_value.h).
  std::map<std::string, std::vector<std::string>> finetunings{};
  std::set<std::string> failed{};  ///< folders of runs of which a fine-tuning failed
};

using StudyMetric = std::variant<LossMetric, SuiteMetric, TaskMetric>;

/// What is known of a metric before any run.
struct MetricTraits {
  std::string name;   ///< `mlm`, `blimp accuracy`
  std::string title;  ///< `held-out mlm loss`, `blimp accuracy`
  std::string unit;   ///< `nats`, `points`
  bool higher_is_better = false;
  std::string floor{};            ///< what a network that has learnt nothing reaches: `word frequencies`, `guessing`
  bool has_curve_in_unit = true;  ///< curves of its runs are in `unit`
  double most_margin = 1e6;       ///< a margin above it was meant in another unit
  double least_margin = 0;        ///< a margin below it was meant in another unit
};
MetricTraits traits_of(const StudyMetric& metric);

/// Whether one value is better than another.
bool is_better(double value, double other, const StudyMetric& metric);

/// The head of a column of values: `held-out loss`, `blimp accuracy [points]`.
std::string value_words(const StudyMetric& metric);

/// The value of a metric for a finished run.
struct MetricValue {
  double value = 0;          ///< in the unit of the metric
  ExampleLosses examples{};  ///< whose quotient is the value; empty: it is no mean of examples
  std::string measured{};    ///< how it was measured: objectives, rows, masks
  std::string text{};        ///< fingerprint of what it was measured on; examples of equal ones are the same
  double by_nats = 1;        ///< the value by the loss of the curve
  double floor = 0;          ///< what a network that has learnt nothing reaches; 0: that of the curve, or not known
};

/// What is reached without a network, in the unit of a metric.
struct NamedFloor {
  std::string name;
  double value = 0;
};

/// Documents, or what stands for them, that the examples of a value are from.
int64_t documents_in(const MetricValue& value);

/// A part of the held-out examples. What is tuned is chosen on one that the verdict never sees.
enum class HeldOutPart { whole, development, verdict };

/// Whether the examples of a held-out document are for development: a quarter, by XXH3 of its index.
bool is_development(uint64_t document);

/// The value on a part of its examples, split by documents, or by the clusters of a suite. Throws DataError where it is
/// no mean of examples, or has none of that part. `folder`: of its run.
MetricValue part_of(MetricValue value, HeldOutPart part, const std::string& folder);

/// The value of a run directory. Throws DataError, which ends in the `remedy`, for a file that is missing, damaged, cut
/// or edited, and for a run that has not answered.
MetricValue value_of(const StudyMetric& metric, const std::string& folder, const std::string& remedy);

/// The value in a row of metrics.jsonl, without what value_of knows besides: of a loss in nats; none in other rows.
struct CurveValue {
  double value = 0, floor = 0;
  std::string
      loss{};  ///< where a metric is judged after the training: the losses of the run meanwhile, `rtd + generator`
};
std::optional<CurveValue> curve_value(const StudyMetric& metric, const nlohmann::json& row);

/// A text that every row with a curve_value has, by which a reader skips others.
std::string row_mark(const StudyMetric& metric);

/// The metric that a study names. `where`: the key, for messages. Throws ConfigError for one that is unknown, or that
/// its unit cannot measure.
StudyMetric metric_of(const MetricName& named, const std::string& where);

/// Throws ConfigError for a margin that is in another unit than the metric. `where`: the key, for messages.
void check_margin(double margin, const StudyMetric& metric, const std::string& where);

/// Makes a run measure a metric: adds to `evaluation`.
void ask(RunConfig& run, const StudyMetric& metric);

}  // namespace cloze
