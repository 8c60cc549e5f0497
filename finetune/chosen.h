#pragma once
// What a fine-tuning chooses and finds on the valid part besides its best step.
#include <cstdint>
#include <optional>

#include "core/json_fields.h"
#include "run/run.h"

namespace cloze {

/// Fields of state.json: the choices of the last evaluation, so that every checkpoint has its own.
struct ChosenOnValid {
  double no_answer_threshold = 0;  ///< of spans; 0: none was chosen
  double threshold = 0.5;          ///< above which a label is predicted, where the task asks for one to be chosen
  double temperature = 0;          ///< that the probabilities of one label are right at; 0: none was fitted
  int64_t probed_layer = -1;       ///< of probes of several layers: the best one; -1: there was none
  /// The score is better than that of the floor by more than its interval; none: an earlier version did not say.
  std::optional<bool> learned{};
};
template <class V>
void describe(V& v, ChosenOnValid& c) {
  v.or_else("no_answer_threshold", c.no_answer_threshold, 0);
  v.or_else("threshold", c.threshold, 0.5);
  v.or_else("temperature", c.temperature, 0);
  v.or_else("probed_layer", c.probed_layer, -1);
  v.maybe("learned", c.learned);
}

/// Those of a checkpoint.
inline ChosenOnValid chosen_on_valid(const TrainState& state) { return state.chosen.get<ChosenOnValid>(); }

}  // namespace cloze
