#pragma once
// The test part of a run's task, judged once, when the run is over.
#include <optional>
#include <string>

#include "evaluation/layer_curve.h"
#include "evaluation/suites/suite_result.h"
#include "train/training.h"

namespace cloze {

/// After the last step judges the test part with the best checkpoint, and writes predictions.jsonl, hardest.md and
/// confusion.svg into the run, and of probes of several layers layers.svg. Does nothing for a run without a task.
class TaskTest final : public Callback {
 public:
  void finish(Training& training) override;
  /// The content of predictions.jsonl; empty before the end.
  const std::string& predictions() const { return predictions_; }
  /// The figures of the test part; none before the end.
  const std::optional<SuiteResult>& result() const { return result_; }
  /// The curve over layers; none before the end, and of a head that is not several probes.
  const std::optional<LayerCurve>& layers() const { return layers_; }

 private:
  std::optional<SuiteResult> result_{};
  std::string predictions_{};
  std::optional<LayerCurve> layers_{};
};

}  // namespace cloze
