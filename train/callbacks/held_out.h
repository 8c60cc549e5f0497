#pragma once
// The validation of a run while it trains, and its best step.
#include <limits>
#include <memory>

#include "train/callbacks/checkpoints.h"
#include "train/callbacks/training_log.h"
#include "train/training.h"
#include "train/validation.h"

namespace cloze {

/// Validates at the steps that `evaluation` asks for and at the end, keeps track of the best step, of which a
/// checkpoint is saved, and ends the run when evaluation.patience is over. A step that was evaluated before the run was
/// resumed is not counted again, nor is one at which nothing could be measured. A cost that is not finite or a loss far
/// above that of guessing is never the best; of equal costs the first is.
class HeldOutEvaluation final : public Callback {
 public:
  HeldOutEvaluation(Training& training, const TrainingLog& log, Checkpoints& checkpoints);

  void restore(Training& training, const SavedStep& saved) override;
  void begin(Training& training) override;
  void note_due(const Training& training, bool at_end) override;
  void after_step(Training& training) override;
  void finish(Training& training) override;
  void save(TrainState& state) const override;
  void conclude(const Training& training, PretrainReport& report) override;

  bool is_due() const { return due_; }
  /// The content of held_out.json.
  std::string file(const Training& training) const { return validation_->file(training, protocol_); }

 private:
  bool is_due_after(const Training& training) const;
  void evaluate(Training& training);
  void record(Training& training) const;
  void report_nothing_measured(const Training& training);
  void warn(const Training& training);
  bool shows_divergence(Training& training) const;
  void save_best(Training& training);
  void stop_without_gain(Training& training) const;

  const TrainingLog& log_;
  Checkpoints& checkpoints_;
  const std::unique_ptr<Validation> validation_;
  const std::string protocol_;
  bool due_ = false;
  int64_t evaluated_at_ = -1;  ///< step
  int64_t best_step_ = 0;      ///< 0: none
  double best_cost_ = 0;
  nlohmann::json chosen_;  ///< at the last evaluation
  int64_t evaluations_without_gain_ = 0;
  bool warned_of_few_replaced_ = false, reported_nothing_measured_ = false;
};

}  // namespace cloze
