// The layers of the heads of tasks.
#include "models/initialization.h"
#include "objectives/rows.h"
#include "objectives/task_heads/head_layers.h"
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
struct LayersOfHead final : Objective {
  LayersOfHead(const TaskHead& config, std::shared_ptr<HeadKind> of_kind, const HeadContext& in)
      : Objective(config),
        head_name_(config.name()),
        weight(config.weight),
        terms(config),
        use(config.use()),
        kind(std::move(of_kind)),
        design(head_of(config, use, in.model)),
        text_state{config.head, design.token, design.mean, in.base.eos_token_id} {
    const int64_t width = in.base.hidden_size;
    if (design.pooler)  // one that pretraining lacked is part of the head
      for (const auto& [name, param] : collect_params(in.backbone))
        if (name == "pooler.weight") set_first_weights(param, design.weights, design.dense_range);
    if (design.block) block = own("block", std::make_shared<HeadBlock>(transformer_of(in.model)));
    if (design.dense)
      dense = own("dense",
                  std::make_shared<HeadLinear>(width, width, design.dense_bias, design.weights, design.dense_range));
    if (design.norm) norm = own("norm", std::make_shared<Norm>(width, in.base));
    output = own("output", std::make_shared<HeadLinear>(width, config.outputs(), design.output_bias, design.weights,
                                                        design.output_range));
  }

  std::string name() const override { return head_name_; }

  std::vector<LossPart> parts(const Batch& batch) const override {
    return {part_of_head(head_name_, weight, terms, *kind, batch)};
  }

  Tensor read_positions(const Batch& batch) const override {
    if (use == HeadUse::tokens) return batch.positions;
    if (!reads_texts(use) || design.mean) return {};
    const auto position = text_state.positions(batch);
    return (at::ones_like(position).cumsum(0) - 1) * batch.input_ids.size(1) + position;
  }

  void count_predictions(const Batch& batch, std::vector<RowSizes>& rows) const override {
    count_labelled(batch, rows);
  }

  Cost cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const override {
    double states = 0;
    for (const auto& row : rows) states += row.count * (reads_texts(use) ? 1 : row.read);
    return {.trained = states *
                       ((design.pooler ? backbone.pooling_multiply_adds() : 0) + (block ? block->multiply_adds() : 0) +
                        (dense ? dense->multiply_adds() : 0) + output->multiply_adds())};
  }

  /// The logits fp32 [..., K] of states [..., D]; those of a text [B, D].
  Tensor logits_of(Backbone& backbone, const Tensor& states, uint64_t key) const {
    Dropout drop{.p = design.dropout, .key = mix(key, name_hash("head")), .active = is_training()};
    auto x = design.pooler ? backbone.pooled(states.unsqueeze(1)) : states;
    if (block) x = block->forward(x, drop);
    drop.site = 2;
    if (design.dropout_before) x = dropout(x, drop);
    drop.site = 3;
    if (design.plain_norms) x = plain_norm(x);
    if (dense) x = linear_activation(x, dense->weight, dense->bias, design.activation);
    if (norm) x = norm->forward(x);
    if (design.plain_norms) x = plain_norm(x);
    return linear(dropout(x, drop), output->weight, output->bias).to(at::kFloat);
  }

  /// Those of the states that a loss, or an output, is of. BigBird's question is no answer.
  Tensor logits_of_batch(Backbone& backbone, const Tensor& states, const Batch& batch) const {
    const auto logits = kind->logits(logits_of(backbone, states, batch.dropout_key), batch);
    if (!block || !batch.context_begin.defined()) return logits;
    const auto place = at::ones_like(batch.input_ids).cumsum(1) - 1;
    const auto question = place.gt(0).logical_and(place.lt(batch.context_begin.unsqueeze(1)));
    return logits - question.unsqueeze(-1).to(at::kFloat) * 1e6;  // as in transformers
  }

  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    auto part = LayersOfHead::parts(batch)[0];
    const auto states = reads_texts(use)         ? text_state.of(hidden, batch)
                        : use == HeadUse::tokens ? take_rows(hidden.flatten(0, 1), batch.positions)
                                                 : hidden;
    kind->fill(part, logits_of_batch(backbone, states, batch), batch, is_training());
    return {part};
  }

  /// A state alone does not tell which of them the head reads.
  NetworkOutputs outputs(Backbone&, const Tensor&) override { return {}; }
  NetworkOutputs batch_outputs(Backbone& backbone, const Tensor& hidden, const Batch& batch, const Traces*) override {
    const auto states = reads_texts(use) ? text_state.of(hidden, batch) : hidden;
    return kind->outputs(logits_of_batch(backbone, states, batch));
  }

  std::string head_name_;
  double weight;
  TaskHeadTerms terms;
  HeadUse use;
  std::shared_ptr<HeadKind> kind;
  PublishedHead design;
  TextState text_state;
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
