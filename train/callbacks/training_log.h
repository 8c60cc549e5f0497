#pragma once
// What training says in the log and writes to metrics.jsonl of its own steps.
#include <nlohmann/json.hpp>
#include <string>

#include "core/stopwatch.h"
#include "distributed/slow_process.h"
#include "run/process.h"
#include "train/training.h"

namespace cloze {

/// `-` for a loss without predictions.
std::string fixed_or_dash(double value, int digits);

/// Says what will be trained; then shows progress, and writes a line of the log and of metrics.jsonl each
/// checkpoint.log_every steps: means over the steps since the previous line. Reports, once a process, steps without
/// predictions, other processes on its cores, and losses of a run that has diverged.
class TrainingLog final : public Callback {
 public:
  void restore(Training&, const SavedStep& saved) override { line_ = saved.state.line; }
  void begin(Training& training) override;
  void note_due(const Training& training, bool at_end) override;
  void after_step(Training& training) override;
  void finish(Training& training) override;
  void save(TrainState& state) const override { state.line = line_; }

  /// The losses of the last line of this process, by objective: {loss, accuracy, count}; of binary ones with the
  /// majority baseline, of detection with F1. Null: none.
  const nlohmann::json& losses() const { return losses_; }

 private:
  void warn_of_no_predictions(const Training& training);
  void warn_of_shared_cores();
  void warn_of_slow_process(const Training& training, double window);
  void show_progress(const Training& training, double speed, bool plain) const;
  void record(Training& training, double speed);
  void look_for_divergence(Training& training) const;

  LogLine line_{};
  nlohmann::json losses_{};
  Clock::time_point shown_ = Clock::now();
  double seconds_at_line_ = 0;
  int64_t tokens_at_line_ = 0;
  std::vector<double> waited_at_line_{};
  SlowProcess slow_{};
  CoreTime cores_at_begin_{};
  Clock::time_point begun_ = Clock::now();
  bool warned_of_no_predictions_ = false;
  bool warned_of_shared_cores_ = false;
};

}  // namespace cloze
