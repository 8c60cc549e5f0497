#pragma once
// Scores of a task: metrics of predictions with their intervals, a table by label, the confusion, and comparisons.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/report/score.h"
#include "core/config/config_rule.h"
#include "tasks/item.h"
#include "tasks/kind.h"
#include "tasks/tag_scheme.h"

namespace cloze {

/// Which of SQuAD's programs scores answers.
enum class SquadVersion { automatic, v1_1, v2_0 };
constexpr auto choices(SquadVersion) {
  using enum SquadVersion;
  return std::array{Choice{automatic, "automatic", "2.0 where some question has no answer, else 1.1"},
                    Choice{v1_1, "1.1", "every question has an answer; a missing prediction is wrong"},
                    Choice{v2_0, "2.0", "questions without answers; a missing prediction is left out"}};
}

struct MetricOptions {
  TagScheme scheme = TagScheme::none;  ///< of strict scores of tags; none: as their letters tell
  SquadVersion squad = SquadVersion::automatic;
  /// Spans of version 2.0: a question whose `no_answer` is above it gets no answer; none: answers stay as they are.
  std::optional<double> no_answer_threshold{};
  bool has_no_answer_scores = false;  ///< spans: `no_answer` is known, so that the best thresholds are scores
  /// Spans: items in the order of the file of no-answer scores, in which the published program takes equal scores;
  /// empty: their own order.
  std::vector<size_t> no_answer_order{};
  int64_t resamples = 1000;  ///< of the bootstrap; 0: no intervals but Wilson's
  uint64_t seed = 1;         ///< of the bootstrap
};

/// A label, or a type of entities.
struct LabelMetrics {
  std::string label{};
  double precision = 0, recall = 0, f1 = 0;
  int64_t gold = 0, predicted = 0, right = 0;
};

/// How often each label was predicted for items of each label.
struct Confusion {
  std::vector<std::string> labels{};           ///< `(unknown)` at the end, where something is none of the labels
  std::vector<std::vector<int64_t>> counts{};  ///< [gold][predicted]
};

struct TaskScores {
  std::vector<Score> scores{};
  std::vector<LabelMetrics> per_label{};
  std::optional<Confusion> confusion{};  ///< none: there are no labels, or more than `most_confused`
  /// How the programs that others use for a metric say what their numbers are of, by metric.
  std::vector<std::pair<std::string, std::string>> signatures{};
};
inline constexpr int64_t most_confused = 100;

/// All scores of predictions for items.
///
/// predictions  one for each item, in the order of the items; the ids are not compared. Of spans, one whose `id` is
///              empty is missing
/// Throws DataError for another number of predictions, for tags that are not as many as words, and for an item whose
/// gold answer is missing or of another kind.
TaskScores metrics_of(AnyTaskKind kind, const std::vector<TaskItem>& items, const TaskLabels& labels,
                      const std::vector<TaskPrediction>& predictions, const MetricOptions& options = {});

/// Values of metrics alone, without intervals and tables.
std::vector<Score> values_of(AnyTaskKind kind, const std::vector<TaskItem>& items, const TaskLabels& labels,
                             const std::vector<TaskPrediction>& predictions, const MetricOptions& options = {});

/// The score of a name; null: there is none.
const Score* score_of(const TaskScores& scores, const std::string& metric);

/// A metric with what comparisons of several models on the same items need.
struct ScoreOnDraws {
  double value = 0;  ///< NaN: it is undefined
  /// Of a share of units (items, or groups of them) that are right: the share of each, whose mean is the value, NaN of
  /// one that it leaves out; else empty.
  std::vector<double> of_units{};
  /// Else the value on each of so many bootstrap draws of clusters of units, which are the same for all predictions for
  /// these items.
  std::vector<double> draws{};
  int64_t units = 0;                 ///< items, or groups of them
  std::vector<uint64_t> clusters{};  ///< [units], those of units that share a text (tasks/scores/item_clusters.h)
};

/// Draws that a comparison takes.
inline constexpr int64_t comparison_draws = 1000;

/// A metric of predictions by its name. Throws as `metrics_of`, and DataError for a name that the task does not have.
ScoreOnDraws score_on_draws(AnyTaskKind kind, const std::vector<TaskItem>& items, const TaskLabels& labels,
                            const std::vector<TaskPrediction>& predictions, const std::string& metric,
                            const MetricOptions& options = {});

/// Two sets of predictions for the same items, first less second; intervals are of the bootstrap that draws both on the
/// same items.
struct PairedScores {
  std::vector<Score> scores{};
  int64_t only_first = 0, only_second = 0;  ///< items that one of them alone has right
  std::optional<double> mcnemar{};  ///< two-sided p; none for regression, whose items are neither right nor wrong
};

/// Throws as `metrics_of`.
PairedScores compare_predictions(AnyTaskKind kind, const std::vector<TaskItem>& items, const TaskLabels& labels,
                                 const std::vector<TaskPrediction>& first, const std::vector<TaskPrediction>& second,
                                 const MetricOptions& options = {});

}  // namespace cloze
