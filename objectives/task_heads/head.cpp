// The heads of tasks and their losses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "models/initialization.h"
#include "objectives/objective.h"
#include "objectives/task_heads/class_positions.h"
#include "objectives/task_heads/layer_probes.h"
#include "objectives/task_heads/task_heads.h"
#include "tasks/rows/task_row.h"

namespace cloze {

namespace {

/// The deviation of numbers evenly within 1 / sqrt(inputs).
double torch_deviation(int64_t inputs) { return 1 / std::sqrt(3.0 * static_cast<double>(inputs)); }

/// Sets how a weight [N, K] is drawn. `range`: of normal and truncated.
void set_first_weights(Param weight, FirstWeights first, double range) {
  switch (first) {
    case FirstWeights::normal:
      weight.set_init_range(range, Spread::normal);
      break;
    case FirstWeights::truncated:
      weight.set_init_range(range, Spread::truncated);
      break;
    case FirstWeights::glorot:
      set_xavier(weight);
      break;
    case FirstWeights::torch_linear:
      weight.set_init_range(torch_deviation(weight.value().size(1)), Spread::uniform);
  }
}

/// A dense layer with the first weights of a published head.
struct HeadLinear : Layer {
  HeadLinear(int64_t in, int64_t out, bool with_bias, FirstWeights first, double range)
      : weight(own_param("weight", {out, in}, Init::weight)) {
    const bool draws_bias = first == FirstWeights::torch_linear;
    if (with_bias) bias = own_param("bias", {out}, draws_bias ? Init::weight : Init::zero, Role::bias);
    set_first_weights(weight, first, range);
    if (with_bias && draws_bias) bias.set_init_range(torch_deviation(in), Spread::uniform);
  }
  double multiply_adds() const { return static_cast<double>(weight.value().numel()); }
  Param weight, bias;
};

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

/// The mean [B, D] of the states [B, T, D] of real tokens.
Tensor mean_of_real(const Tensor& hidden, const Tensor& mask) {
  if (!mask.defined()) return hidden.to(at::kFloat).mean(1).to(hidden.scalar_type());
  const auto real = mask.to(at::kFloat).unsqueeze(-1);
  return ((hidden.to(at::kFloat) * real).sum(1) / real.sum(1).clamp_min(1)).to(hidden.scalar_type());
}

/// A norm over the last axis without weights.
Tensor plain_norm(const Tensor& x) { return at::layer_norm(x, {x.size(-1)}, {}, {}, 1e-5); }

/// A head of a task, its loss and its outputs.
struct TaskHead final : Objective, LayerProbes {
  TaskHead(TaskKind of_task, const ObjectiveTerms& of_all, const TaskHeadTerms& given, const HeadContext& in)
      : Objective(of_all),
        task(of_task),
        terms(given),
        design(head_of(given, of_task, in.model)),
        probed(probed_layers(given, in.model)),
        depth(layers_below_head(in.model)),
        weight(of_all.weight),
        eos(in.base.eos_token_id) {
    const int64_t width = in.base.hidden_size;
    if (design.pooler)  // one that pretraining lacked is part of the head
      for (const auto& [name, param] : collect_params(in.backbone))
        if (name == "pooler.weight") set_first_weights(param, design.weights, design.dense_range);
    if (design.block) block = own("block", std::make_shared<HeadBlock>(transformer_of(in.model)));
    if (design.dense)
      dense = own("dense",
                  std::make_shared<HeadLinear>(width, width, design.dense_bias, design.weights, design.dense_range));
    if (design.norm) norm = own("norm", std::make_shared<Norm>(width, in.base));
    const auto add_output = [&](const std::string& name) {
      return own(name, std::make_shared<HeadLinear>(width, outputs_of(task, terms), design.output_bias, design.weights,
                                                    design.output_range));
    };
    for (const auto layer : probed) linear_probes.push_back(add_output(concat("layer", layer)));
    if (probed.empty())
      output = add_output("output");
    else
      chosen_probe = probed.size() - 1;
  }

  std::string name() const override { return name_of(task); }

  std::vector<LossPart> parts(const Batch& batch) const override {
    LossPart part{.name = name(), .weight = weight};
    part.count = counted(batch);
    const bool sums_probes = is_training() && probed.size() > 1;
    part.has_accuracy = task != TaskKind::regression && !sums_probes;
    if (!terms.class_weights.empty() && batch.labels.defined()) part.weights = weights_of(batch.labels);
    return {part};
  }

  /// The number of predictions of a batch.
  int64_t counted(const Batch& batch) const {
    switch (task) {
      case TaskKind::multilabel:
      case TaskKind::regression:
        return batch.targets.numel();
      case TaskKind::spans:
        return batch.labels.size(0);
      case TaskKind::classification:
      case TaskKind::tagging:
      case TaskKind::choice:
        return batch.labels.ne(no_label).sum().item<int64_t>();
    }
    return 0;
  }

  Tensor class_weights(const Tensor& like) const {
    return at::tensor(at::ArrayRef<double>(terms.class_weights), at::kDouble).to(at::kFloat).to(like.device());
  }
  Tensor weights_of(const Tensor& labels) const {
    return class_weights(labels).index_select(0, labels.clamp_min(0)).masked_fill(labels.eq(no_label), 0.0);
  }

  Tensor read_positions(const Batch& batch) const override {
    if (!probed.empty() || task == TaskKind::spans) return {};
    if (task == TaskKind::tagging) return batch.positions;
    if (design.mean) return {};
    const auto position = positions(batch);
    return (at::ones_like(position).cumsum(0) - 1) * batch.input_ids.size(1) + position;
  }

  /// The decoder of an encoder-decoder reads the whole text, and nothing is predicted token by token.
  void count_predictions(const Batch& batch, std::vector<RowSizes>& rows) const override {
    for (auto& row : rows) {
      row.predicted = 0;
      if (batch.decoder_input_ids.defined()) row.target_length = row.length;
    }
  }

  Cost cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const override {
    double states = 0;
    for (const auto& row : rows) states += row.count * (reads_texts(task) ? 1 : row.read);
    double each = (design.pooler ? backbone.pooling_multiply_adds() : 0) + (block ? block->multiply_adds() : 0) +
                  (dense ? dense->multiply_adds() : 0) + (output ? output->multiply_adds() : 0);
    for (const auto& probe : linear_probes) each += probe->multiply_adds();
    return {.trained = states * each};
  }

  /// The position of the state that stands for each text, int64 [B].
  Tensor positions(const Batch& batch) const {
    using enum HeadDesign;
    const bool of_family = terms.head == huggingface || terms.head == original || terms.head == babylm_pooled;
    if (of_family && batch.class_positions.defined()) return batch.class_positions;
    if (terms.head == babylm_left) return at::zeros_like(batch.input_ids.select(1, 0));
    return class_positions_of(design.token, batch.input_ids, batch.attention_mask, eos);
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

  /// The state [B, D] that stands for each row.
  Tensor row_states(const Tensor& hidden, const Batch& batch) const {
    if (design.mean) return mean_of_real(hidden, batch.attention_mask);
    const auto index = positions(batch).unsqueeze(-1).unsqueeze(-1).expand({-1, 1, hidden.size(-1)});
    return hidden.gather(1, index).squeeze(1);
  }

  /// Of each row, fp32 [B, K].
  Tensor row_logits(Backbone& backbone, const Tensor& hidden, const Batch& batch) const {
    return logits_of(backbone, row_states(hidden, batch), batch.dropout_key);
  }

  /// Of each token as the first and as the last of an answer, fp32 [B, T, 2]. BigBird's question is no answer.
  Tensor span_logits(Backbone& backbone, const Tensor& hidden, const Batch& batch) const {
    const auto logits = logits_of(backbone, hidden, batch.dropout_key);
    if (!block || !batch.context_begin.defined()) return logits;
    const auto place = at::ones_like(batch.input_ids).cumsum(1) - 1;
    const auto question = place.gt(0).logical_and(place.lt(batch.context_begin.unsqueeze(1)));
    return logits - question.unsqueeze(-1).to(at::kFloat) * 1e6;  // as in transformers
  }

  /// Of each candidate of each item, fp32 [I, n]; those that an item lacks have none.
  static Tensor by_item(const Tensor& scores, const Batch& batch) {  // [B, 1]
    if (!batch.candidates.defined()) return scores;
    const auto of_items =
        scores.squeeze(-1).index_select(0, batch.candidates.clamp_min(0).flatten()).view_as(batch.candidates);
    return of_items.masked_fill(batch.candidates.lt(0), -std::numeric_limits<float>::infinity());
  }

  // Of the probes of layers.

  LayerProbes* probes() override { return probed.empty() ? nullptr : this; }
  const std::vector<int64_t>& layers() const override { return probed; }
  size_t chosen() const override { return chosen_probe; }
  void choose(int64_t layer) override {
    const auto found = std::ranges::find(probed, layer);
    if (found != probed.end()) chosen_probe = static_cast<size_t>(found - probed.begin());
  }

  Tensor states_of(const Traces& traces, const Batch& batch) const override {
    const auto& trace = traces.decoder.hidden_states.empty() ? traces.encoder : traces.decoder;
    const auto& all = trace.hidden_states;
    const auto blocks = (static_cast<int64_t>(all.size()) - 1) / std::max<int64_t>(depth, 1);  // in a layer
    std::vector<Tensor> tensors;
    for (const auto layer : probed) {
      const auto& hidden = all.at(static_cast<size_t>(layer * blocks));
      const auto taken = task != TaskKind::tagging   ? row_states(hidden, batch)
                         : batch.positions.defined() ? hidden.flatten(0, 1).index_select(0, batch.positions)
                                                     : hidden;
      tensors.push_back(taken.to(at::kFloat));
    }
    return at::stack(tensors);
  }

  Tensor logits(size_t probe, const Tensor& states) const override { return by_task(probe_logits(probe, states, {})); }

  Tensor probe_logits(size_t probe, const Tensor& states, const Dropout& drop) const {
    const auto& own = *linear_probes.at(probe);
    const auto x = states.to(own.weight.compute().scalar_type());
    return linear(dropout(x, drop), own.weight, own.bias).to(at::kFloat);
  }

  /// The sum of the losses of all probes, each of which is that of its probe alone; of a network that is not trained,
  /// the loss of the one that stands for the run.
  Tensor fill_by_probes(LossPart& part, const Batch& batch) const {
    const Dropout drop{
        .p = design.dropout, .key = mix(batch.dropout_key, name_hash("head")), .site = 3, .active = is_training()};
    Tensor sum;
    for (size_t probe = 0; probe < probed.size(); ++probe) {
      if (!is_training() && probe != chosen_probe) continue;
      const auto logits = probe_logits(probe, batch.states[static_cast<int64_t>(probe)], drop);
      fill_part(part, task == TaskKind::choice ? by_item(logits, batch) : logits, batch);
      sum = sum.defined() ? sum + part.sum : part.sum;
    }
    return sum;
  }

  // Its losses.

  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    auto part = TaskHead::parts(batch)[0];
    if (probed.empty())
      fill_part(part, loss_logits(backbone, hidden, batch), batch);
    else
      part.sum = fill_by_probes(part, batch);
    return {part};
  }

  /// The logits that a loss is of: of texts [B, K], of tags [N, K], of spans [B, T, 2], of choices [I, n].
  Tensor loss_logits(Backbone& backbone, const Tensor& hidden, const Batch& batch) const {
    switch (task) {
      case TaskKind::classification:
      case TaskKind::multilabel:
      case TaskKind::regression:
        return row_logits(backbone, hidden, batch);
      case TaskKind::tagging:
        return logits_of(backbone, take_rows(hidden.flatten(0, 1), batch.positions), batch.dropout_key);
      case TaskKind::spans:
        return span_logits(backbone, hidden, batch);
      case TaskKind::choice:
        break;
    }
    return by_item(row_logits(backbone, hidden, batch), batch);
  }

  void fill_part(LossPart& part, const Tensor& logits, const Batch& batch) const {
    switch (task) {
      case TaskKind::classification:
      case TaskKind::choice:
        return fill_by_labels(part, logits, batch.labels, rows_of(batch.labels));
      case TaskKind::multilabel:
      case TaskKind::regression:
        return fill_by_targets(part, logits, batch.targets);
      case TaskKind::tagging:
        return fill_by_labels(part, logits, batch.labels, batch.positions.div(batch.input_ids.size(1), "floor"));
      case TaskKind::spans:
        return fill_by_spans(part, logits, batch);
    }
  }

  /// 0, 1, 2, ...
  static Tensor rows_of(const Tensor& labels) { return at::ones_like(labels).cumsum(0) - 1; }

  static void fill(LossPart& part, const Tensor& losses, const Tensor& rows, const Tensor& single) {
    const bool graph = at::GradMode::is_enabled();
    part.sum = graph ? losses.sum() : losses.sum(at::kDouble).to(at::kFloat);
    if (!graph) part.single = {.row = rows, .loss = single};
  }

  /// Cross entropy of labels int64 [N] against logits [N, K].
  void fill_by_labels(LossPart& part, const Tensor& logits, const Tensor& labels, const Tensor& rows) const {
    const double smoothing = is_training() ? terms.label_smoothing : 0;
    const auto weights = terms.class_weights.empty() ? std::optional<Tensor>() : class_weights(logits);
    const auto losses =
        at::cross_entropy_loss(logits, labels, weights, at::Reduction::None, no_label, smoothing);  // [N]
    part.correct = logits.argmax(-1).eq(labels).sum().item<int64_t>();
    const auto single = weights && !at::GradMode::is_enabled()
                            ? at::cross_entropy_loss(logits, labels, {}, at::Reduction::None, no_label)
                            : losses;
    fill(part, losses, rows, single);
  }

  /// Binary cross entropy or squared error of targets [B, L].
  void fill_by_targets(LossPart& part, const Tensor& logits, const Tensor& targets) const {
    Tensor losses;
    if (task == TaskKind::multilabel) {
      losses = at::binary_cross_entropy_with_logits(logits, targets, {}, {}, at::Reduction::None);
      part.correct = logits.gt(0).eq(targets.gt(0.5)).sum().item<int64_t>();
    } else {
      losses = (logits - scaled(targets)).square();
    }
    const auto rows = rows_of(targets.select(1, 0).to(at::kLong)).unsqueeze(1).expand_as(targets).flatten();
    fill(part, losses, rows, losses.flatten());
  }
  Tensor scaled(const Tensor& targets) const {
    return terms.scale.empty() ? targets : (targets - terms.scale[0]) / (terms.scale[1] - terms.scale[0]);
  }
  /// The reverse: values of a regression on the scale of the task; other logits as they are.
  Tensor by_task(const Tensor& values) const {
    const bool is_scaled = task == TaskKind::regression && !terms.scale.empty();
    return !is_scaled ? values : values * (terms.scale[1] - terms.scale[0]) + terms.scale[0];
  }

  /// The mean of the cross entropies of the first and of the last token, over the real tokens of each row.
  void fill_by_spans(LossPart& part, const Tensor& logits, const Batch& batch) const {
    auto scores = logits;
    if (batch.attention_mask.defined())
      scores =
          scores.masked_fill(batch.attention_mask.logical_not().unsqueeze(-1), -std::numeric_limits<float>::infinity());
    const auto of_side = [&](int64_t side) {
      return at::cross_entropy_loss(scores.select(-1, side), batch.labels.select(1, side), {}, at::Reduction::None);
    };
    const auto losses = (of_side(0) + of_side(1)) / 2;  // [B]
    part.correct = scores.argmax(1).eq(batch.labels).all(1).sum().item<int64_t>();
    fill(part, losses, rows_of(batch.labels.select(1, 0)), losses);
  }

  /// A state alone does not tell which of them the head reads.
  NetworkOutputs outputs(Backbone&, const Tensor&) override { return {}; }
  NetworkOutputs batch_outputs(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    if (!probed.empty()) {
      const auto logits = TaskHead::logits(chosen_probe, batch.states[static_cast<int64_t>(chosen_probe)]);
      return {{"logits", task == TaskKind::choice ? by_item(logits, batch) : logits}};
    }
    switch (task) {
      case TaskKind::classification:
      case TaskKind::multilabel:
      case TaskKind::regression:
        return {{"logits", by_task(row_logits(backbone, hidden, batch))}};
      case TaskKind::tagging:
        return {{"logits", logits_of(backbone, hidden, batch.dropout_key)}};
      case TaskKind::choice:
        return {{"logits", by_item(row_logits(backbone, hidden, batch), batch)}};
      case TaskKind::spans:
        break;
    }
    const auto logits = span_logits(backbone, hidden, batch);
    return {{"start_logits", logits.select(-1, 0)}, {"end_logits", logits.select(-1, 1)}};
  }

  TaskKind task;
  TaskHeadTerms terms;
  PublishedHead design;
  std::vector<int64_t> probed;  // layers
  int64_t depth;                // of the stack below
  double weight;
  int64_t eos;
  std::shared_ptr<HeadBlock> block;
  std::shared_ptr<HeadLinear> dense, output;
  std::shared_ptr<Norm> norm;
  std::vector<std::shared_ptr<HeadLinear>> linear_probes{};  // of `probed`
  size_t chosen_probe = 0;
};

}  // namespace

std::shared_ptr<Objective> make_task_head(TaskKind task, const ObjectiveTerms& of_all, const TaskHeadTerms& terms,
                                          const HeadContext& in) {
  return std::make_shared<TaskHead>(task, of_all, terms, in);
}

}  // namespace cloze
