#include "objectives/task_heads/layer_probes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace cloze {

LayerProbes::LayerProbes(const TaskHead& config, std::shared_ptr<HeadKind> kind, const HeadContext& in)
    : LabelledLoss(config, std::move(kind), in),
      layers_(probed_layers(config, in.model)),
      depth_(layers_below_head(in.model)) {
  for (const auto layer : layers_)
    probes_.push_back(own(concat("layer", layer),
                          std::make_shared<HeadLinear>(in.base.hidden_size, config.outputs(), design_.output_bias,
                                                       design_.weights, design_.output_range)));
  chosen_ = layers_.size() - 1;
}

void LayerProbes::choose(int64_t layer) {
  const auto found = std::ranges::find(layers_, layer);
  if (found != layers_.end()) chosen_ = static_cast<size_t>(found - layers_.begin());
}

void LayerProbes::restore(const nlohmann::json& chosen) { choose(chosen.value("probed_layer", int64_t{-1})); }

std::vector<const Layer*> LayerProbes::clipped_apart() const {
  std::vector<const Layer*> all;
  for (const auto& probe : probes_) all.push_back(probe.get());
  return all;
}

std::vector<LossPart> LayerProbes::parts(const Batch& batch) const {
  auto part = LabelledLoss::parts(batch)[0];
  if (is_training() && layers_.size() > 1) part.has_accuracy = false;  // the sum of several
  return {part};
}

Cost LayerProbes::cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const {
  double each = 0;
  for (const auto& probe : probes_) each += probe->multiply_adds();
  return {.trained = count_states(rows) * each + (kept_.defined() ? 0 : backbone.multiply_adds(rows))};
}

/// The states of the layers, which traces have by block.
Tensor LayerProbes::states_in(const Traces& traces, const Batch& batch) const {
  const auto& trace = traces.decoder.hidden_states.empty() ? traces.encoder : traces.decoder;
  const auto& all = trace.hidden_states;
  const auto blocks = (static_cast<int64_t>(all.size()) - 1) / std::max<int64_t>(depth_, 1);  // in a layer
  std::vector<Tensor> tensors;
  for (const auto layer : layers_) {
    const auto& hidden = all.at(static_cast<size_t>(layer * blocks));
    const auto taken = use_ != HeadUse::tokens     ? text_state_.of(hidden, batch)
                       : batch.positions.defined() ? hidden.flatten(0, 1).index_select(0, batch.positions)
                                                   : hidden;
    tensors.push_back(taken.to(at::kFloat));
  }
  return at::stack(tensors);
}

Tensor LayerProbes::states(Backbone& backbone, const Batch& batch) const {
  const at::NoGradGuard no_grad;
  Traces traces;
  traces.encoder.keeps_attentions = traces.decoder.keeps_attentions = false;
  backbone.hidden(batch, &traces);
  return states_in(traces, batch);
}

Tensor LayerProbes::logits_of(size_t probe, const Tensor& states, const Dropout& drop) const {
  const auto& own = *probes_.at(probe);
  const auto x = states.to(own.weight.compute().scalar_type());
  return linear(dropout(x, drop), own.weight, own.bias).to(at::kFloat);
}

Tensor LayerProbes::logits(size_t probe, const Tensor& states) const {
  return kind_->by_task(logits_of(probe, states, {}));
}

/// The sum of the losses of all probes, each of which is that of its probe alone; of a network that is not trained, the
/// loss of the one that stands for the run.
std::vector<LossPart> LayerProbes::losses(Backbone& backbone, const Tensor&, const Batch& batch) {
  auto part = parts(batch)[0];
  const bool has_kept = is_training() && kept_.defined() && batch.states_at.defined();
  const auto read = has_kept ? kept_.index_select(1, batch.states_at) : states(backbone, batch);
  const Dropout drop{
      .p = design_.dropout, .key = mix(batch.dropout_key, name_hash("head")), .site = 3, .active = is_training()};
  Tensor sum;
  for (size_t probe = 0; probe < probes_.size(); ++probe) {
    if (!is_training() && probe != chosen_) continue;
    const auto outputs = logits_of(probe, read[static_cast<int64_t>(probe)], drop);
    kind_->fill(part, kind_->logits(outputs, batch), batch, is_training());
    sum = sum.defined() ? sum + part.sum : part.sum;
  }
  part.sum = sum;
  return {part};
}

/// Of the probe that stands for the run, at all tokens.
NetworkOutputs LayerProbes::batch_outputs(Backbone&, const Tensor&, const Batch& given, const Traces* layers) {
  auto batch = given;
  batch.positions = Tensor();
  const auto states = states_in(*layers, batch)[static_cast<int64_t>(chosen_)];
  return kind_->outputs(kind_->logits(logits_of(chosen_, states, {}), batch));
}

LayerProbes* probes_of(const Network& network) {
  return network.objectives.size() == 1 ? dynamic_cast<LayerProbes*>(network.objectives[0].get()) : nullptr;
}

}  // namespace cloze
