#pragma once
// Linear probes of layers, which tell what a network that stays as it is has in the states of each.
#include <vector>

#include "objectives/batch.h"

namespace cloze {

/// The head of a task as linear layers, one on the states of each of some layers. They share nothing, and one of them
/// stands for the run: the last, until another is chosen.
/// Source: Alain and Bengio 2016 (arXiv 1610.01644).
class LayerProbes {
 public:
  /// Those that have a probe, ascending; 0 = the embeddings.
  virtual const std::vector<int64_t>& layers() const = 0;
  /// The states fp32 [L, N, D] that the probes read of a batch, taken from the states of all layers: one of each row;
  /// of tags one at each of the batch's positions or, where it has none, [L, B, T, D]. Plain operators, traceable.
  virtual Tensor states_of(const Traces& traces, const Batch& batch) const = 0;
  /// The logits fp32 [..., K] of one of the probes for its states [..., D], without dropout and on the scale of the
  /// task.
  virtual Tensor logits(size_t probe, const Tensor& states) const = 0;
  /// The number of the probe that stands for the run.
  virtual size_t chosen() const = 0;
  /// Lets the probe of this layer stand for the run; a layer that has none changes nothing.
  virtual void choose(int64_t layer) = 0;

 protected:
  ~LayerProbes() = default;
};

}  // namespace cloze
