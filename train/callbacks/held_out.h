#pragma once
// The held-out evaluation of a run while it trains, and its best step.
#include <limits>
#include <vector>

#include "evaluation/evaluate.h"
#include "train/callbacks/checkpoints.h"
#include "train/callbacks/task_judge.h"
#include "train/callbacks/training_log.h"
#include "train/training.h"

namespace cloze {

/// Evaluates at the steps that `evaluation` asks for and at the end, keeps track of the best step, of which a
/// checkpoint is saved, and ends the run when evaluation.patience is over. A step that was evaluated before the run was
/// resumed is not counted again, nor is one at which no objective of the evaluation is active. A loss that is not
/// finite or far above that of guessing is never the best. The best step of a task is that of its figure on the valid
/// part: of equal ones the first, and never one without a value.
class HeldOutEvaluation final : public Callback {
 public:
  HeldOutEvaluation(Training& training, const TrainingLog& log, Checkpoints& checkpoints);

  void restore(Training& training, const SavedStep& saved) override;
  void begin(Training& training) override;
  void note_due(const Training& training, bool at_end) override;
  void after_step(Training& training) override;
  void finish(Training& training) override;
  void save(TrainState& state) const override;

  bool is_due() const { return due_; }
  /// The losses of the last evaluation; empty before the first.
  const std::vector<HeldOut>& losses() const { return losses_; }
  /// Their weighted sum, by which the best step is chosen unless a task has a figure; NaN: not evaluated.
  double loss() const { return loss_; }
  int64_t best_step() const { return best_step_; }
  /// What the run has learned of its task (TaskJudge::summary); null without one.
  nlohmann::json task_summary() const;
  /// The unigram baseline of the first objective that predicts tokens; zeros without one.
  Baseline unigram() const;
  /// The content of held_out.json.
  std::string file(const Training& training) const;

 private:
  void announce(const Training& training) const;
  bool is_due_after(const Training& training) const;
  void evaluate(Training& training);
  void measure(Training& training);
  void record(Training& training) const;
  void report_nothing_measured(const Training& training);
  void warn(const Training& training);
  bool shows_divergence(Training& training) const;
  void save_best(Training& training);
  void stop_without_gain(Training& training) const;

  const TrainingLog& log_;
  Checkpoints& checkpoints_;
  std::optional<TaskJudge> judge_;
  const std::vector<Measure> measures_;  ///< empty where a task is judged, whose predictions tell the loss too
  const std::string protocol_;
  std::vector<HeldOut> losses_{};
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  bool due_ = false;
  int64_t evaluated_at_ = -1;                               ///< step
  int64_t best_step_ = 0;                                   ///< 0: none
  double cost_ = std::numeric_limits<double>::quiet_NaN();  ///< what the best step has the least of: loss_, or that of
                                                            ///< the task
  double best_cost_ = 0;
  double no_answer_threshold_ = 0;  ///< chosen at the last evaluation, as the next
  int64_t probed_layer_ = -1;
  int64_t evaluations_without_gain_ = 0;
  bool warned_of_few_replaced_ = false, reported_nothing_measured_ = false;
};

}  // namespace cloze
