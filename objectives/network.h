#pragma once
// A backbone with the heads of its objectives.
#include <optional>

#include "models/families/backbone.h"
#include "objectives/batch.h"
#include "objectives/config.h"

namespace cloze {

/// A projection to the vocabulary: the logits of its rows are rows E' + bias.
struct VocabularyProjection {
  Tensor rows;  ///< [N, E]
  Param table;  ///< [V, E]
  Param bias;   ///< [V], or undefined
};

/// A loss on a backbone's hidden states, and its head.
class Objective : public Layer {
 public:
  explicit Objective(const ObjectiveTerms& terms) : terms_(terms) {}
  virtual std::string name() const = 0;
  /// Prefix of the head's parameter names. Next-token objectives share `lm`, so that one can start from the weights of
  /// another.
  virtual std::string head_name() const { return name(); }
  /// The loss counts in the step last given to set_step.
  bool active() const { return terms_.active(step_); }
  void set_step(int64_t step) { step_ = step; }
  /// The steps at which its part in training changes.
  virtual std::vector<int64_t> changes() const { return {terms_.from_step, terms_.until_step}; }
  /// `prefix` makes rows of this objective bidirectional in a decoder.
  virtual bool uses_prefix() const { return false; }
  /// `losses` uses the backbone's hidden states.
  virtual bool reads_backbone() const { return true; }
  /// Unique indices into the flattened [B T] of the hidden states that `losses` uses, int64 [N]; undefined: all.
  virtual Tensor read_positions(const Batch&) const { return {}; }
  /// Multiply-adds outside the backbone for a batch of these rows: of the head, and of networks of its own.
  virtual Cost cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const = 0;
  /// Fills in the sizes of a batch's rows that only this objective knows.
  virtual void count_predictions(const Batch&, std::vector<RowSizes>&) const {}
  bool before_step(int64_t step, const Rng& rng) override {
    set_step(step);
    return Layer::before_step(step, rng);
  }
  /// The losses of a batch; those of `rewrite` come before them in the order of `parts`. hidden [B, T, D]: of the batch
  /// after `rewrite`.
  virtual std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) = 0;
  /// Name, weight and number of predictions of each loss, known before the forward pass.
  virtual std::vector<LossPart> parts(const Batch& batch) const = 0;
  /// Changes the batch before the backbone runs; returns the losses of the network that did so. `key` is the random key
  /// of this pass.
  virtual std::vector<LossPart> rewrite(Batch&, uint64_t) { return {}; }
  /// Rows of a batch for held-out losses: as many as asked for, or a fixed number where the draws of `rewrite` depend
  /// on it.
  virtual int64_t scored_batch_size(int64_t asked) const { return asked; }
  /// The head's outputs at every position, under Hugging Face's names. Plain operators, traceable.
  virtual std::vector<std::pair<std::string, Tensor>> outputs(Backbone& backbone, const Tensor& hidden) = 0;
  /// The head's logits of hidden states [N, D], before they are multiplied; none of a head without a vocabulary.
  virtual std::optional<VocabularyProjection> projection(const Backbone&, const Tensor&) const { return {}; }

 protected:
  int64_t step() const { return step_; }

 private:
  ObjectiveTerms terms_;
  int64_t step_ = 0;
};

/// The backbone and the heads: all parameters of a model.
class Network : public Layer {
 public:
  Network(const ModelConfig& model, const Objectives& objectives);
  /// The losses of all active objectives, in the order of the config. `new_mems`, if given, receives the mems for the
  /// next segment.
  std::vector<LossPart> losses(const Batch& batch, uint64_t dropout_key, std::vector<Tensor>* new_mems = nullptr);
  /// The objective with this head. Throws ConfigError if there is none.
  const std::shared_ptr<Objective>& objective_at(const std::string& head) const;
  /// The losses of the objective with this head only, active or not. Throws ConfigError if there is none.
  std::vector<LossPart> losses_at(const std::string& head, const Batch& batch, uint64_t dropout_key);
  /// The same without sums: names, weights and numbers of predictions.
  std::vector<LossPart> parts(const Batch& batch) const;
  /// Multiply-adds of `losses` for a batch of these rows; without objectives, of the backbone.
  Cost cost(const std::vector<RowSizes>& rows) const;
  /// The sizes of a batch's rows, before `rewrite`.
  std::vector<RowSizes> row_sizes(const Batch& batch) const;
  /// FLOPs of the forward and the backward pass of a batch, as Cost defines them.
  double training_flops(const Batch& batch) const { return cost(row_sizes(batch)).training_flops(); }
  /// `last_hidden_state`, `encoder_last_hidden_state`, `pooler_output` and the outputs of every head at all positions,
  /// under Hugging Face's names.
  std::vector<std::pair<std::string, Tensor>> outputs(const Inputs& inputs, Traces* traces = nullptr);

  /// The backbone stays as it is from here on, and has no dropout: a probe trains the heads and the pooler alone.
  /// Source: Alain and Bengio 2016 (arXiv 1610.01644), of heads that may have hidden layers.
  void freeze_backbone();
  /// True for parameters that freeze_backbone holds, by their names.
  static bool is_probed(const std::string& name);

  std::shared_ptr<Backbone> backbone;
  std::vector<std::shared_ptr<Objective>> objectives;
  const ModelConfig& model_config() const { return model_; }

 private:
  using Heads = std::vector<std::shared_ptr<Objective>>;
  Heads active_objectives() const;
  std::vector<LossPart> losses_of(const Heads& heads, Batch batch, uint64_t dropout_key, std::vector<Tensor>* new_mems);
  ModelConfig model_;
  bool frozen_backbone_ = false;
};

}  // namespace cloze
