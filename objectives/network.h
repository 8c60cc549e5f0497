#pragma once
// A backbone with the heads of its objectives: everything that has parameters.
#include "models/families/backbone.h"
#include "objectives/batch.h"
#include "objectives/config.h"

namespace cloze {

/// A loss over a backbone's hidden states, and the head that it needs.
class Objective : public Layer {
 public:
  explicit Objective(const ObjectiveTerms& terms) : terms_(terms) {}
  virtual std::string name() const = 0;
  /// The first part of its parameters' names. Losses that predict the next token share one, so that weights of one
  /// serve another.
  virtual std::string slot() const { return name(); }
  /// This loss counts in the step that was named last.
  bool active() const { return terms_.active(step_); }
  void set_step(int64_t step) { step_ = step; }
  /// `losses` reads hidden states.
  virtual bool reads_backbone() const { return true; }
  /// The places of the flattened [B T] whose hidden states `losses` reads, int64 [N], each once; undefined: all.
  virtual Tensor read_positions(const Batch&) const { return {}; }
  bool before_step(int64_t step, const Rng& rng) override {
    set_step(step);
    return Layer::before_step(step, rng);
  }
  /// The losses of a training batch, behind those of `rewrite` in the order of `parts`. hidden [B, T, D] of the batch
  /// that `rewrite` left.
  virtual std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) = 0;
  /// Name, weight and number of predictions of each loss, known before the forward pass.
  virtual std::vector<LossPart> parts(const Batch& batch) const = 0;
  /// Changes the batch before the backbone reads it; returns the losses of what did that. `key` names this pass's
  /// random draws.
  virtual std::vector<LossPart> rewrite(Batch&, uint64_t) { return {}; }
  /// The head's outputs at every position, under the names that Hugging Face gives them. Plain operators, traceable.
  virtual std::vector<std::pair<std::string, Tensor>> outputs(Backbone& backbone, const Tensor& hidden) = 0;

 protected:
  int64_t step() const { return step_; }

 private:
  ObjectiveTerms terms_;
  int64_t step_ = 0;
};

/// Everything that has parameters.
class Network : public Layer {
 public:
  Network(const ModelConfig& model, const Objectives& objectives);
  /// Every loss of every active objective, in the order of the config. `new_memories`, where given, receives what the
  /// next segment reads.
  std::vector<LossPart> losses(const Batch& batch, uint64_t dropout_key, std::vector<Tensor>* new_memories = nullptr);
  /// The losses of the objective at `head` alone, active or not. Throws ConfigError without such a head.
  std::vector<LossPart> losses_at(const std::string& head, const Batch& batch, uint64_t dropout_key);
  /// The same without sums: names, weights, numbers of predictions.
  std::vector<LossPart> parts(const Batch& batch) const;
  /// `last_hidden_state`, `encoder_last_hidden_state`, `pooler_output` and every head's outputs at all positions, under
  /// Hugging Face's names.
  std::vector<std::pair<std::string, Tensor>> outputs(const Inputs& inputs, Traces* traces = nullptr);

  std::shared_ptr<Backbone> backbone;
  std::vector<std::shared_ptr<Objective>> objectives;
  const ModelConfig& model_config() const { return model_; }

 private:
  using Heads = std::vector<std::shared_ptr<Objective>>;
  Heads active_ones() const;
  std::vector<LossPart> losses_of(const Heads& heads, Batch batch, uint64_t dropout_key,
                                  std::vector<Tensor>* new_memories);
  ModelConfig model_;
};

}  // namespace cloze
