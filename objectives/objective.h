#pragma once
// A loss on the hidden states of a backbone, and its head.
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "models/families/backbone.h"
#include "models/layers/heads.h"
#include "objectives/batch.h"
#include "objectives/config.h"

namespace cloze {

/// A projection to the vocabulary: the logits of its rows are rows E' + bias.
struct VocabularyProjection {
  Tensor rows;  ///< [N, E]
  Param table;  ///< [V, E]
  Param bias;   ///< [V], or undefined
};

/// What a network gives, by name, in order: `logits` [B, T, V], `pooler_output` [B, D], ...
using NetworkOutputs = std::vector<std::pair<std::string, Tensor>>;

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
  /// `losses` uses the backbone's hidden states, which are undefined where no objective does.
  virtual bool reads_backbone() const { return true; }
  /// `batch_outputs` uses the states of all layers, and so does `layer_losses`.
  virtual bool reads_layers() const { return false; }
  /// `layer_losses` uses queries, keys and values (Trace::projections).
  virtual bool reads_projections() const { return false; }
  /// Parts of its head that share nothing with any other, so that the gradient of each is clipped by its own norm as if
  /// it were trained alone; none: the network's gradient is clipped as one.
  virtual std::vector<const Layer*> clipped_apart() const { return {}; }
  /// Takes what the validation chose at a checkpoint (TrainState::chosen).
  virtual void restore(const nlohmann::json& /*chosen*/) {}
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
  /// The same of one that reads the backbone's layers.
  virtual std::vector<LossPart> layer_losses(Backbone& backbone, const Tensor& hidden, const Batch& batch,
                                             const Traces& /*layers*/) {
    return losses(backbone, hidden, batch);
  }
  /// Name, weight, number of predictions and their weights of each loss, known before the forward pass.
  virtual std::vector<LossPart> parts(const Batch& batch) const = 0;
  /// Changes the batch before the backbone runs; returns the losses of the network that did so. `key` is the random key
  /// of this pass.
  virtual std::vector<LossPart> rewrite(Batch&, uint64_t) { return {}; }
  /// Rows of a batch for held-out losses: as many as batch_size for, or a fixed number where the draws of `rewrite`
  /// depend on it.
  virtual int64_t scored_batch_size(int64_t batch_size) const { return batch_size; }
  /// The head's outputs at every position, under Hugging Face's names. Plain operators, traceable.
  virtual NetworkOutputs outputs(Backbone& backbone, const Tensor& hidden) = 0;
  /// The same for a batch, of which heads of tasks read more than its hidden states. `layers`: the states of all
  /// layers, where reads_layers asks for them.
  virtual NetworkOutputs batch_outputs(Backbone& backbone, const Tensor& hidden, const Batch&,
                                       const Traces* /*layers*/ = nullptr) {
    return outputs(backbone, hidden);
  }
  /// The head's logits of hidden states [N, D], before they are multiplied; none of a head without a vocabulary.
  virtual std::optional<VocabularyProjection> projection(const Backbone&, const Tensor&) const { return {}; }

 protected:
  int64_t step() const { return step_; }

 private:
  ObjectiveTerms terms_;
  int64_t step_ = 0;
};

/// What a head is made for. Each kind of objective has
///   std::shared_ptr<Objective> make_head(const Config& config, const HeadContext& in);
/// in its folder; next-token objectives share that of objectives/next_token.h.
struct HeadContext {
  const ModelConfig& model;
  const Backbone& backbone;
  const BackboneConfig& base = backbone_of(model);
};

// What the objectives share.

/// Flat indices of predictions into [B width], int64 [N].
struct FlatIndices {
  Tensor index;
  int64_t width = 1;
};
/// The z-loss of a network in training; held-out losses have none.
inline LossOptions in_training(const ZLoss& terms, bool is_training) {
  return {.z_loss = is_training ? terms.z_loss : 0};
}

/// Fills `part`, whose weights count, with the cross entropy of `hidden` [N, D] against the output embedding: the sum
/// and, without gradients, the individual predictions.
void fill_by_tokens(LossPart& part, const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                    const FlatIndices& flat, const LossOptions& shape = {}, TokenDraw* draw = nullptr);
/// The same for binary classification: `losses` fp32 [N], `predictions` and `labels` [N], nonzero = positive.
void fill_by_answers(LossPart& part, const Tensor& losses, const Tensor& predictions, const Tensor& labels,
                     const FlatIndices& flat);

/// The MLM head of `model`.
std::shared_ptr<TokenHead> make_token_head(const BackboneConfig& model);

}  // namespace cloze
