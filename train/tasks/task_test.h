#pragma once
// The test part of a run's task, judged once, when the run is over.
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "evaluation/suites/suite_result.h"
#include "evaluation/tasks/judged_task.h"
#include "evaluation/tasks/layer_curve.h"
#include "train/training.h"

namespace cloze {

/// After the last step judges the test part with the best checkpoint, and writes predictions.jsonl, hardest.md and
/// confusion.svg into the run, of one label reliability.svg, and of probes of several layers layers.svg.
class TaskTest final : public Callback {
 public:
  void finish(Training& training) override;
  /// Adds to what the validation says of the task (PretrainReport::task) "test": {METRIC: {value, low, high, count}}
  /// and "notes", of one label "calibrated": {temperature, ece, nll}, with probes of several layers "layer", the best
  /// one, and "layers" (evaluation/tasks/layer_curve.h); warns of a run that did not learn.
  void conclude(const Training& training, PretrainReport& report) override;

 private:
  /// Draws and says what the temperature of the valid part makes of the probabilities.
  void calibrate(Training& training, const JudgedTask& task, const PreparedSplit& split, const JudgedSplit& judged);

  std::optional<SuiteResult> result_{};  ///< the scores of the test part; none before the end
  std::optional<bool> learned_{};        ///< by the best checkpoint; none: it does not say
  std::string predictions_{};            ///< the content of predictions.jsonl
  std::optional<LayerCurve> layers_{};   ///< of several probes
  nlohmann::json calibration_{};         ///< null: no temperature was fitted
};

}  // namespace cloze
