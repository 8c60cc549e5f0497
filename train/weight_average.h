#pragma once
// The exponential moving average of a run's weights.
#include <vector>

#include "core/tensor/param.h"

namespace cloze {

/// After each update, average += (1 - decay) (weights - average); it begins with the weights before the first update.
/// Fixed parameters, such as random features, are not averaged but those of the network.
/// Source: ltgoslo/gpt-bert, pretraining/train_10m.py, where decay is 0.999; the idea: Polyak and Juditsky 1992.
class WeightAverage {
 public:
  WeightAverage(double decay, FlatParameters& flat);
  void update();
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
