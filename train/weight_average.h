#pragma once
// The exponential moving average of a run's weights.
#include <vector>

#include "core/tensor/param.h"

namespace cloze {

/// After the update of step t, average += (1 - d) (weights - average) with d = min(decay, (1 + t) / (10 + t)), so that
/// the average of an early step is not one of initial weights. Fixed parameters, such as random features, are not
/// averaged but those of the network.
/// Source: TensorFlow's ExponentialMovingAverage with num_updates; the idea: Polyak and Juditsky 1992. Differs:
/// ltgoslo/gpt-bert, pretraining/train_10m.py, has d = decay from the first step on.
class WeightAverage {
 public:
  WeightAverage(double decay, FlatParameters& flat);
  /// `step`: the number of updates, this one included.
  void update(int64_t step);
  /// Starts again from the weights of the network.
  void restart();
  /// The network gets the average, and this keeps its weights; a second call takes that back.
  void exchange();
  /// What this keeps, under the names of the parameters.
  std::vector<NamedParam> params() const;

 private:
  double decay_;
  FlatParameters& flat_;
  Tensor average_;  // fp32 [n], laid out as the values
};

}  // namespace cloze
