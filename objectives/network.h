#pragma once
// A backbone with the heads of its objectives.
#include "models/adaptation/low_rank_factors.h"
#include "objectives/distil/config.h"
#include "objectives/objective.h"

namespace cloze {

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
  /// FLOPs of the forward and the backward pass of these rows, as Cost defines them.
  /// is_whole   as in RowSizes
  double training_flops(std::vector<RowSizes> rows, bool is_whole = false) const;
  /// The same of a batch.
  double training_flops(const Batch& batch, bool is_whole = false) const {
    return training_flops(row_sizes(batch), is_whole);
  }
  /// `last_hidden_state`, `encoder_last_hidden_state`, `pooler_output` and the outputs of every head at all positions,
  /// under Hugging Face's names.
  NetworkOutputs outputs(const Inputs& inputs, Traces* traces = nullptr);
  /// The same for a batch; `new_mems`, if given, receives the mems for the next segment.
  NetworkOutputs batch_outputs(const Batch& batch, Traces* traces = nullptr, std::vector<Tensor>* new_mems = nullptr);

  /// The backbone stays as it is from here on, its random features too, and has no dropout: a probe trains the heads
  /// and the pooler alone. Source: Alain and Bengio 2016 (arXiv 1610.01644), of heads that may have hidden layers.
  void freeze_backbone();
  /// The backbone, and heads that are none of a task, stay as they are but for what this trains. Throws ConfigError for
  /// what the network does not have.
  void adapt(const AdaptationConfig& adaptation);
  /// In training, the losses are also those by which the network becomes like its teacher, which stays as it is. Throws
  /// ConfigError for what the two cannot compare.
  void learn_from(const DistilConfig& config, std::shared_ptr<Network> teacher);
  /// null: it has none.
  const Network* teacher() const { return teacher_.get(); }
  /// What training holds beside `collect_params`: the teacher's, all of them base.
  std::vector<NamedParam> teachers_params() const;
  /// All parameters are the network's own again, with what was trained beside them.
  void release_base();
  bool before_step(int64_t step, const Rng& rng) override;

  std::shared_ptr<Backbone> backbone;
  std::vector<std::shared_ptr<Objective>> objectives;
  const ModelConfig& model_config() const { return model_; }

 private:
  using Heads = std::vector<std::shared_ptr<Objective>>;
  Heads active_objectives() const;
  NetworkOutputs outputs_of(Inputs inputs, const Batch& batch, Traces* traces);
  std::vector<LossPart> losses_of(const Heads& heads, Batch batch, uint64_t dropout_key, std::vector<Tensor>* new_mems);
  ModelConfig model_;
  bool frozen_backbone_ = false;
  bool has_task_head_ = false;
  std::shared_ptr<LowRankFactors> factors_{};
  std::shared_ptr<Network> teacher_{};
  std::shared_ptr<Objective> distillation_{};  ///< null: there is no teacher
};

}  // namespace cloze
