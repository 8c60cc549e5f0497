#pragma once
// The scores of a run's task while it trains, by which its best step is chosen.
#include <optional>
#include <string>
#include <vector>

#include "evaluation/suites/suite_result.h"
#include "evaluation/tasks/judged_task.h"
#include "finetune/chosen.h"
#include "train/training.h"
#include "train/validation.h"

namespace cloze {

/// Scores of a task as those of a suite: what logs, metrics.jsonl, summary.json and reports show of it. The first one
/// is that which chooses; of a part without scores it is the only one, and NaN.
SuiteResult suite_result_of(const std::string& name, const std::string& metric, const JudgedSplit& judged);

/// Judges the valid part of a run's task, in place of losses of a held-out text: the best step is that with the best
/// score, never one without a value. Its loss is that of the same predictions.
class TaskValidation final : public Validation {
 public:
  /// Reads the valid part. Throws DataError for a damaged one, ConfigError for a score that the task does not have.
  explicit TaskValidation(const RunConfig& config);

  void measure(Training& training) override { judge(*training.network); }
  /// Measures a network: chooses the threshold of no answer, or of several probes the best one, of equal ones that of
  /// the lowest layer. Predictions that are not finite, as of a training that diverged, have a score and a loss of
  /// NaN.
  void judge(Network& network);
  /// The loss of guessing evenly on the valid part.
  double guessing() const { return loss_of_guessing(task_, valid_); }
  /// The score, with its sign changed where more is better.
  double cost() const override { return cost_; }
  /// `  sst2-valid accuracy 0.8291 (majority 0.5092)`
  std::string text() const override;
  void add_to(nlohmann::json& row) const override;
  nlohmann::json chosen() const override { return chosen_; }
  /// False: a network that is too sure of a part that it does not know can have learned the task.
  bool shows_divergence() const override { return false; }
  /// What the best score and that of the floor are: {"metric", "best", "floor", "learned"}, the last by their values
  /// alone.
  void conclude(double best_cost, PretrainReport& report) const override;

 private:
  JudgedSplit judge_head(Network& network);
  JudgedSplit judge_best_probe(Network& network);
  bool beats_floor(const JudgedSplit& judged) const;
  void raise_floor(std::vector<TaskPrediction> constant, const MetricOptions& options);

  JudgedTask task_;
  PreparedSplit valid_;
  std::optional<RowStates> states_{};  ///< of the valid part, whose network stays as it is
  ChosenOnValid chosen_{};
  std::string name_, metric_, loss_name_;
  double floor_ = 0, cost_ = 0;  ///< costs; NaN: undefined
  std::string floor_name_{};
  SuiteResult result_{};  ///< `NAME-valid`, and its scores
};

}  // namespace cloze
