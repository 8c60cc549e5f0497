#pragma once
// Linear probes of layers, which tell what a network that stays as it is has in the states of each.
#include <vector>

#include "objectives/network.h"
#include "objectives/task_heads/head_kind.h"

namespace cloze {

/// The head of a task as linear layers, one on the states of each of some layers. They share nothing, and one of them
/// stands for the run: the last, until another is chosen. The backbone stays as it is, so that they run it for rows
/// whose states are not kept.
/// Source: Alain and Bengio 2016 (arXiv 1610.01644).
class LayerProbes final : public LabelledLoss {
 public:
  LayerProbes(const TaskHead& config, std::shared_ptr<HeadKind> kind, const HeadContext& in);

  /// Those that have a probe, ascending; 0 = the embeddings.
  const std::vector<int64_t>& layers() const { return layers_; }
  /// The states fp32 [L, N, D] that the probes read of a batch, without gradients: one of each row; of tags one at each
  /// of the batch's positions or, where it has none, [L, B, T, D]. Dropout of the backbone is that of its mode.
  Tensor states(Backbone& backbone, const Batch& batch) const;
  /// The logits fp32 [..., K] of one of the probes for its states [..., D], without dropout and on the scale of the
  /// task.
  Tensor logits(size_t probe, const Tensor& states) const;
  /// The number of the probe that stands for the run.
  size_t chosen() const { return chosen_; }
  /// Lets the probe of this layer stand for the run; a layer that has none changes nothing.
  void choose(int64_t layer);
  /// Keeps the states [L, S, D] of all rows that are trained on, so that the backbone is run for none of them again: a
  /// batch has those at Batch::states_at.
  void keep(Tensor states) { kept_ = std::move(states); }

  /// False: losses are of kept states, or of those that the probes take from the backbone themselves.
  bool reads_backbone() const override { return false; }
  bool reads_layers() const override { return true; }
  std::vector<const Layer*> clipped_apart() const override;
  void restore(const nlohmann::json& chosen) override;
  std::vector<LossPart> parts(const Batch& batch) const override;
  Cost cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const override;
  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override;
  NetworkOutputs batch_outputs(Backbone& backbone, const Tensor& hidden, const Batch& batch,
                               const Traces* layers) override;

 private:
  Tensor states_in(const Traces& traces, const Batch& batch) const;
  Tensor logits_of(size_t probe, const Tensor& states, const Dropout& drop) const;

  std::vector<int64_t> layers_;
  int64_t depth_;                                      ///< of the stack below
  std::vector<std::shared_ptr<HeadLinear>> probes_{};  ///< of `layers_`
  size_t chosen_ = 0;
  Tensor kept_{};
};

/// The head of a network as probes of layers; null: it has another.
LayerProbes* probes_of(const Network& network);

}  // namespace cloze
