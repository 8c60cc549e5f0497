#pragma once
// The inputs and the losses of a training step.
#include <memory>
#include <optional>

#include "models/backbone.h"

namespace cloze {

/// Rows of tokens, which a network reads, and their prediction targets. Made on a worker thread, on the CPU, without
/// the model.
struct Batch : Inputs {
  /// int64 [N], flat indices of the predicted tokens: into [B T]; with decoder_input_ids into [B U]; with
  /// target_positions into [B N]
  Tensor positions;
  Tensor labels;      ///< int64 [N], their ids
  Tensor weights;     ///< fp32 [N], factors of their losses; undefined: ones
  Tensor pair_label;  ///< int64 [B]: 0 = B follows A, 1 = random or swapped
  // Of the heads of tasks, whose `labels` are int64 [B] of rows, [N] of tokens, [B, 2] of first and last tokens of
  // answers, or [I] of the right candidates of I items; -100 = not counted.
  Tensor class_positions;  ///< int64 [B], the token that stands for each row; undefined: as the family has it
  Tensor targets;          ///< fp32 [B, L], values of regression, or 1 for each label that a row has
  Tensor candidates;       ///< int64 [I, n], the rows of each item's candidates, -1 = it has fewer
  Tensor context_begin;    ///< int64 [B], the first token of the context in which an answer lies
  Tensor states_at;        ///< int64 [N], numbers of the states that probes of layers read (LayerProbes::keep);
                           ///< undefined: they have none
  Tensor replaced;         ///< int64 [B, T], 1 = not the original token; undefined before the generator of rtd has run
  int64_t tokens = 0;      ///< real tokens, without padding
  int64_t forced_pairs = 0;                ///< rows whose pair label was not drawn
  std::shared_ptr<const Batch> on_host{};  ///< of a batch on a device: as it was made, to count and select in
  bool continues = false;  ///< each row continues the same row of the previous step, and may attend to its mems

  const Batch& host() const { return on_host ? *on_host : *this; }

  /// All that its maker may have filled, to move it to a device.
  std::vector<Tensor*> tensors() {
    std::vector<Tensor*> all{&input_ids,
                             &attention_mask,
                             &token_type_ids,
                             &global_attention_mask,
                             &positions,
                             &labels,
                             &weights,
                             &pair_label,
                             &prefix,
                             &decoder_input_ids,
                             &decoder_attention_mask,
                             &visible,
                             &backward,
                             &target_positions,
                             &class_positions,
                             &targets,
                             &candidates,
                             &context_begin,
                             &states_at,
                             &replaced};
    for (auto& mem : mems) all.push_back(&mem);
    return all;
  }
};

/// Counts of a binary classification; positive = label 1 (random, swapped, replaced).
struct BinaryCounts {
  int64_t positives = 0;       ///< labels that are 1
  int64_t predicted = 0;       ///< predictions that are 1
  int64_t true_positives = 0;  ///< both are 1
  bool detects = false;        ///< label 1 is what is to be found, which F1 measures
};
inline BinaryCounts& operator+=(BinaryCounts& all, const BinaryCounts& some) {
  all.positives += some.positives;
  all.predicted += some.predicted;
  all.true_positives += some.true_positives;
  all.detects = all.detects || some.detects;
  return all;
}

/// The individual predictions of a held-out loss.
struct Predictions {
  Tensor row{};   ///< int64 [N], row in the batch
  Tensor loss{};  ///< fp32 [N], not weighted
};

/// One loss of a step.
struct LossPart {
  std::string name;         ///< `mlm`, `nsp`, `sop`, `rtd`, `generator`
  bool of_rewrite = false;  ///< of the network that changed the batch, as a generator does
  double weight = 1;
  Tensor sum{};       ///< fp32 [], summed over `count`, each times its weight
  int64_t count = 0;  ///< predictions
  Tensor weights{};   ///< fp32 [N], of each prediction; undefined: ones
  /// int64 on the device: [], the predictions whose argmax is the label; of nsp, sop and rtd [4], these and the three
  /// of BinaryCounts; undefined: 0
  Tensor counts{};
  bool has_accuracy = true;  ///< false: of values, which are neither right nor wrong
  bool detects = false;      ///< BinaryCounts::detects
  Predictions single{};      ///< without gradients only

  /// What the sum is divided by: the sum of the weights.
  double total_weight() const {
    return weights.defined() ? weights.sum(at::kDouble).item<double>() : static_cast<double>(count);
  }
  /// From `counts`, for which a device is waited for.
  int64_t correct() const;
  std::optional<BinaryCounts> binary() const;
};

/// LossPart::counts.
Tensor counts_of(int64_t correct, const std::optional<BinaryCounts>& binary = {});
/// Brings what a step reads of its losses to the host by one copy: `sum`, which is a double then, `weights` and
/// `counts`.
void to_host(std::vector<std::vector<LossPart>>& losses);

}  // namespace cloze
