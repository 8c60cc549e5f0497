#pragma once
// A backbone with the heads of its objectives: everything that has parameters.
#include "models/backbone.h"
#include "objectives/batch.h"
#include "objectives/config.h"

namespace cloze {

/// A loss over a backbone's hidden states, and the head that it needs.
class Objective : public Layer {
 public:
  virtual std::string name() const = 0;
  /// The loss of a training batch. hidden [B, T, D].
  virtual LossPart loss(Backbone& backbone, const Tensor& hidden, const Batch& batch) = 0;
  /// How many predictions `loss` will count, known before the forward pass.
  virtual int64_t count(const Batch& batch) const = 0;
  /// The head's outputs at every position, under the names that Hugging Face gives them. Plain operators, traceable.
  virtual std::vector<std::pair<std::string, Tensor>> outputs(Backbone& backbone, const Tensor& hidden) = 0;
};

/// Everything that has parameters.
class Network : public Layer {
 public:
  Network(const ModelConfig& model, const Objectives& objectives);
  /// One part for each objective, in the order of the config.
  std::vector<LossPart> losses(const Batch& batch, uint64_t dropout_key);
  /// `last_hidden_state`, `pooler_output` and every head's outputs at all positions, under Hugging Face's names.
  std::vector<std::pair<std::string, Tensor>> outputs(const Inputs& inputs, Trace* trace = nullptr);

  std::shared_ptr<Backbone> backbone;
  std::vector<std::shared_ptr<Objective>> objectives;
  const ModelConfig& model_config() const { return model_; }

 private:
  ModelConfig model_;
};

}  // namespace cloze
