#pragma once
// What the processes of a run tell each other of a step, so that each knows what one process alone would.
#include <cstdint>
#include <vector>

#include "distributed/communicator.h"
#include "objectives/batch.h"

namespace cloze {

/// What is known of a batch before its passes.
struct BatchFacts {
  int64_t tokens = 0;
  int64_t predicted_tokens = 0;
  double flops = 0;
  std::vector<double> weights{};  ///< of the predictions of each loss: their number, unless they have weights
};

/// The batches of all processes, in the order of their numbers.
struct StepFacts {
  std::vector<BatchFacts> batches{};
  bool is_interrupted = false;  ///< a signal has come to one of them
};
StepFacts exchange_facts(Communicator& processes, const std::vector<BatchFacts>& own, bool is_interrupted);

/// The losses of the batches of all processes, in the order of their numbers: `sum` is a double on the CPU, and of
/// several processes `weights` are the sum of those of a batch.
std::vector<std::vector<LossPart>> exchange_losses(Communicator& processes,
                                                   const std::vector<std::vector<LossPart>>& own);

}  // namespace cloze
