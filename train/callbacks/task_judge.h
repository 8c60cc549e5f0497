#pragma once
// The figures of a run's task while it trains, by which its best step is chosen.
#include <optional>
#include <string>
#include <vector>

#include "evaluation/judged_task.h"
#include "evaluation/suites/suite_result.h"
#include "train/training.h"

namespace cloze {

/// Figures of a task as those of a suite: what logs, metrics.jsonl, summary.json and reports show of it. The first one
/// is that which chooses; of a part without figures it is the only one, and NaN.
SuiteResult suite_result_of(const std::string& name, const std::string& metric, const JudgedPart& judged);

/// Judges the valid part of a run's task.
class TaskJudge {
 public:
  /// Reads the valid part. Throws DataError for a damaged one, ConfigError for a figure that the task does not have.
  explicit TaskJudge(const RunConfig& config);

  /// Judges the network, with the weights that it has now, and chooses the threshold of no answer, or of several probes
  /// the best one, of equal ones that of the lowest layer. Predictions that are not finite, as of a training that
  /// diverged, have a figure and a loss of NaN.
  void judge(Network& network);

  /// What the best step has the least of: the figure, with its sign changed where more is better; NaN: it is undefined.
  double cost() const { return cost_; }
  /// The threshold of no answer that was chosen last (TrainState::no_answer_threshold).
  double no_answer_threshold() const { return task_.setting.no_answer_threshold; }
  /// The layer of the best probe; -1: the head is none.
  int64_t probed_layer() const { return probed_layer_; }
  /// `NAME-valid`, and its figures.
  const SuiteResult& result() const { return result_; }
  /// The loss of guessing evenly on the valid part.
  double guessing() const { return loss_of_guessing(task_, valid_); }
  /// The loss of the same predictions.
  const HeldOut& loss() const { return loss_; }
  /// `  sst2-valid accuracy 0.8291 (majority 0.5092)`
  std::string text() const;
  /// Whether a step of this cost predicts better than the majority class, the mean, `O`, or no answer of the valid
  /// part: where the figure is a share of items, by more than its interval.
  bool learned(double cost) const;
  /// What the best figure and that of the floor are: {"metric", "best", "floor", "learned"}.
  nlohmann::json summary(double best_cost) const;

 private:
  JudgedPart judge_head(Network& network);
  JudgedPart judge_best_probe(Network& network);

  JudgedTask task_;
  PreparedPart valid_;
  std::optional<RowStates> states_{};  ///< of the valid part, whose network stays as it is
  int64_t probed_layer_ = -1;
  std::string name_, metric_, loss_name_;
  double floor_ = 0, cost_ = 0;  ///< costs; NaN: undefined
  int64_t items_ = 0;            ///< of which the figure is a share; 0: it is none
  std::string floor_name_{};
  SuiteResult result_{};
  HeldOut loss_{};
};

/// The judge of a run with a task; none for others.
std::optional<TaskJudge> task_judge_of(const RunConfig& config);

}  // namespace cloze
