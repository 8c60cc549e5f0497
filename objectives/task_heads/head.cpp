// The layers of the heads of tasks.
#include "models/initialization.h"
#include "objectives/rows.h"
#include "objectives/task_heads/layer_probes.h"

namespace cloze {

namespace {

/// The feed-forward layer of BigBird's head of spans.
struct HeadBlock : Layer {
  explicit HeadBlock(const TransformerConfig& m) : act(m.hidden_act), dropout_prob(m.hidden_dropout_prob) {
    const auto linear = [&](const char* name, int64_t in, int64_t out) {
      return own(name, std::make_shared<HeadLinear>(in, out, true, FirstWeights::normal, m.initializer_range));
    };
    intermediate = linear("intermediate", m.hidden_size, m.intermediate_size);
    projection = linear("projection", m.intermediate_size, m.hidden_size);
    norm = own("norm", std::make_shared<Norm>(m.hidden_size, m));
  }
  Tensor forward(const Tensor& x, Dropout drop) const {
    drop.p = dropout_prob;
    const auto inner = linear_activation(dropout(x, drop), intermediate->weight, intermediate->bias, act);
    ++drop.site;
    return linear_dropout_add_norm(inner, projection->weight, projection->bias, drop, x, norm->params);
  }
  double multiply_adds() const { return intermediate->multiply_adds() + projection->multiply_adds(); }
  Activation act;
  double dropout_prob;
  std::shared_ptr<HeadLinear> intermediate, projection;
  std::shared_ptr<Norm> norm;
};

/// A norm over the last axis without weights.
Tensor plain_norm(const Tensor& x) { return at::layer_norm(x, {x.size(-1)}, {}, {}, 1e-5); }

/// A head of a task on the last states.
struct LayersOfHead final : LabelledLoss {
  LayersOfHead(const TaskHead& config, std::shared_ptr<HeadKind> kind, const HeadContext& in)
      : LabelledLoss(config, std::move(kind), in) {
    const int64_t width = in.base.hidden_size;
    if (design_.pooler)  // one that pretraining lacked is part of the head
      for (const auto& [name, param] : collect_params(in.backbone))
        if (name == "pooler.weight") set_first_weights(param, design_.weights, design_.dense_range);
    if (design_.block) block = own("block", std::make_shared<HeadBlock>(transformer_of(in.model)));
    if (design_.dense)
      dense = own("dense",
                  std::make_shared<HeadLinear>(width, width, design_.dense_bias, design_.weights, design_.dense_range));
    if (design_.norm) norm = own("norm", std::make_shared<Norm>(width, in.base));
    output = own("output", std::make_shared<HeadLinear>(width, config.outputs(), design_.output_bias, design_.weights,
                                                        design_.output_range));
  }

  Tensor read_positions(const Batch& batch) const override {
    if (use_ == HeadUse::tokens) return batch.positions;
    if (!reads_texts(use_) || design_.mean) return {};
    const auto position = text_state_.positions(batch);
    return (at::ones_like(position).cumsum(0) - 1) * batch.input_ids.size(1) + position;
  }

  Cost cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const override {
    return {.trained = count_states(rows) *
                       ((design_.pooler ? backbone.pooling_multiply_adds() : 0) + (block ? block->multiply_adds() : 0) +
                        (dense ? dense->multiply_adds() : 0) + output->multiply_adds())};
  }

  /// The logits fp32 [..., K] of states [..., D]; those of a text [B, D].
  Tensor logits_of(Backbone& backbone, const Tensor& states, uint64_t key) const {
    Dropout drop{.p = design_.dropout, .key = mix(key, name_hash("head")), .active = is_training()};
    auto x = design_.pooler ? backbone.pooled(states.unsqueeze(1)) : states;
    if (block) x = block->forward(x, drop);
    drop.site = 2;
    if (design_.dropout_before) x = dropout(x, drop);
    drop.site = 3;
    if (design_.plain_norms) x = plain_norm(x);
    if (dense) x = linear_activation(x, dense->weight, dense->bias, design_.activation);
    if (norm) x = norm->forward(x);
    if (design_.plain_norms) x = plain_norm(x);
    return linear(dropout(x, drop), output->weight, output->bias).to(at::kFloat);
  }

  /// Those of the states that a loss, or an output, is of. BigBird's question is no answer.
  Tensor logits_of_batch(Backbone& backbone, const Tensor& states, const Batch& batch) const {
    const auto logits = kind_->logits(logits_of(backbone, states, batch.dropout_key), batch);
    if (!block || !batch.context_begin.defined()) return logits;
    const auto place = at::ones_like(batch.input_ids).cumsum(1) - 1;
    const auto question = place.gt(0).logical_and(place.lt(batch.context_begin.unsqueeze(1)));
    return logits - question.unsqueeze(-1).to(at::kFloat) * 1e6;  // as in transformers
  }

  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    auto part = parts(batch)[0];
    const auto states = reads_texts(use_)         ? text_state_.of(hidden, batch)
                        : use_ == HeadUse::tokens ? take_rows(hidden.flatten(0, 1), batch.positions)
                                                  : hidden;
    kind_->fill(part, logits_of_batch(backbone, states, batch), batch, is_training());
    return {part};
  }

  NetworkOutputs batch_outputs(Backbone& backbone, const Tensor& hidden, const Batch& batch, const Traces*) override {
    const auto states = reads_texts(use_) ? text_state_.of(hidden, batch) : hidden;
    return kind_->outputs(logits_of_batch(backbone, states, batch));
  }

  std::shared_ptr<HeadBlock> block;
  std::shared_ptr<HeadLinear> dense, output;
  std::shared_ptr<Norm> norm;
};

}  // namespace

std::shared_ptr<Objective> make_task_head(const TaskHead& config, std::shared_ptr<HeadKind> kind,
                                          const HeadContext& in) {
  if (!config.layer.empty()) return std::make_shared<LayerProbes>(config, std::move(kind), in);
  return std::make_shared<LayersOfHead>(config, std::move(kind), in);
}

std::unique_ptr<RowMaker> refuse_text(const TaskHead& config, const RowContext& context) {
  fail<ConfigError>("objective ", config.name(), " reads the rows of a task, and ", context.data.tokens,
                    " has none; fine-tune with `cloze finetune RUN TASK.yaml`");
}

}  // namespace cloze
