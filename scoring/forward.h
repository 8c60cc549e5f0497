#pragma once
// Forward passes over rows, and the log-probabilities of the tokens that they predict.
#include <functional>

#include "objectives/network.h"
#include "scoring/rows.h"

namespace cloze {

/// What becomes of a prediction: it, its log-probability [nats], which may not be finite, and its rank among all
/// tokens, 0 where ranks are not asked for.
using TakeScore = std::function<void(const Prediction& prediction, double log_probability, int64_t rank)>;

/// The head that gives the scores.
class RowScorer {
 public:
  /// `head`: that of the objective; `detects`: it judges tokens, others predict them. `batch_tokens` 0: chosen by the
  /// model's width.
  RowScorer(Network& network, const std::string& head, bool detects, int64_t batch_tokens);
  /// Scores rows of any lengths, sorted so that those of a batch are equally long: nothing is padded. The network
  /// computes in fp32 and without dropout; how it was used before is restored. `take` gets every prediction once.
  void score(std::vector<ScoringRow> rows, const TakeScore& take, bool ranks = false) const;
  int64_t batch_tokens() const { return batch_tokens_; }

 private:
  struct Batch;
  Tensor hidden(const Batch& batch) const;
  Tensor log_probabilities(const Batch& batch, const Tensor& hidden) const;
  Tensor ranks_of(const Batch& batch, const Tensor& hidden) const;

  Network& network_;
  Objective* objective_ = nullptr;
  bool detects_;
  int64_t batch_tokens_;
};

}  // namespace cloze
