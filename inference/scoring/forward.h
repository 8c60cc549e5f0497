#pragma once
// Forward passes over rows, and the log-probabilities of the tokens that they predict.
#include <functional>

#include "core/tensor/ops.h"
#include "inference/scoring/rows.h"
#include "objectives/network.h"

namespace cloze {

/// What a head says of a prediction.
struct Answer {
  double log_probability = 0;  ///< nats, may not be finite
  int64_t rank = 0;            ///< among all tokens, 1 = the most probable; 0: not asked for
  double best = 0;             ///< log-probability of the most probable token, with the rank
};
/// What becomes of a prediction.
using TakeScore = std::function<void(const Prediction& prediction, const Answer& answer)>;

/// The states of a network are computed in bf16: that is wanted, and its device has units for it.
bool computes_in_bf16(const Network& network, Precision precision);

/// The head that gives the scores.
class RowScorer {
 public:
  /// `head`: that of the objective; `detects`: it judges tokens, others predict them. `batch_tokens` 0: chosen by the
  /// model's width.
  RowScorer(Network& network, const std::string& head, bool detects, Precision precision, int64_t batch_tokens);
  /// Scores rows of any lengths, sorted so that those of a batch are equally long: nothing is padded. The network
  /// computes without dropout; how it was used before is restored. `take` gets every prediction once,
  /// from any thread but one at a time. Throws Interrupted after a signal to a program that saves.
  void score(std::vector<ScoringRow> rows, const TakeScore& take, bool ranks = false) const;
  int64_t batch_tokens() const { return batch_tokens_; }

 private:
  struct Batch;
  Tensor hidden(const Batch& batch) const;
  Tensor log_probabilities(const Batch& batch, const Tensor& hidden) const;
  TokenRanks ranks_of(const Batch& batch, const Tensor& hidden) const;
  void after_contexts(std::span<const ScoringRow> rows,
                      const std::function<void(const Batch&, const Tensor& states)>& take) const;
  std::vector<Answer> answers(const Batch& batch, const Tensor& states, bool ranks) const;

  Network& network_;
  Objective* objective_ = nullptr;
  bool detects_;
  Precision precision_;
  int64_t batch_tokens_;
};

}  // namespace cloze
