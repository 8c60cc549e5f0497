#include "objectives/network.h"

#include <algorithm>

#include "core/error.h"
#include "core/tensor/moved.h"
#include "models/initialization.h"
#include "objectives/distil/distillation.h"
#include "objectives/kinds.h"
#include "objectives/next_token.h"
#include "objectives/task_heads/task_heads.h"

namespace cloze {

Network::Network(const ModelConfig& model, const Objectives& configs) : model_(model) {
  const bool pooler = configs.empty() ? base_model_has_pooler(model)
                                      : std::any_of(configs.begin(), configs.end(), [&](const auto& objective) {
                                          return as_kind(objective).uses_pooler(model);
                                        });
  backbone = own("backbone", make_backbone(model, {.pooler = pooler || keeps_pooler(model), .frozen_pooler = !pooler}));
  for (const auto& config : configs) {
    auto objective =
        std::visit([&](const auto& own) { return make_head(own, HeadContext{model, *backbone}); }, *config);
    for (const auto& other : objectives)
      require<ConfigError>(other->head_name() != objective->head_name(), "objectives '", other->name(), "' and '",
                           objective->name(),
                           other->name() == objective->name() ? "' are the same" : "' both predict the next token",
                           "; keep one of them");
    has_task_head_ = has_task_head_ || task_head_of(config);
    set_init_ranges(*objective, backbone_of(model));
    set_depth(*objective, Param::head_depth);
    objectives.push_back(own(objective->head_name(), objective));
  }
}

void Network::freeze_backbone() {
  frozen_backbone_ = true;
  for (auto [name, param] : collect_params(*this))
    if (!param.is_of_head()) param.set_base();
}

void Network::adapt(const AdaptationConfig& adaptation) {
  if (adaptation.is_full()) return;
  const bool by_biases = std::holds_alternative<BitfitAdaptation>(adaptation);
  bool trains = false;
  for (auto [name, param] : collect_params(*this)) {
    const bool is_bias = name.ends_with("bias") && param.role() != Role::score_bias;
    const bool is_trained = (param.is_of_head() && has_task_head_) || (by_biases && is_bias);
    trains = trains || (is_trained && !param.is_of_head());
    if (!is_trained && param.init() != Init::fixed_features) param.set_base();  // features may be drawn anew
  }
  require<ConfigError>(trains || !by_biases, "adaptation.kind bitfit trains biases, and ", kind_of(model_),
                       " has none; choose lora");
  if (const auto* lora = std::get_if<LoraAdaptation>(&adaptation))
    factors_ = own("adaptation", std::make_shared<LowRankFactors>(*lora, *backbone));
}

void Network::learn_from(const DistilConfig& config, std::shared_ptr<Network> teacher) {
  teacher->eval();
  for (auto [name, param] : collect_params(*teacher)) param.set_base();
  distillation_ = own("distil", make_distillation(config, *this, teacher));
  set_init_ranges(*distillation_, backbone_of(model_));
  set_depth(*distillation_, Param::head_depth);
  teacher_ = std::move(teacher);
}

std::vector<NamedParam> Network::teachers_params() const {
  if (!teacher_) return {};
  auto params = collect_params(*teacher_);
  for (auto& named : params) named.name = "teacher." + named.name;
  return params;
}

void Network::release_base() {
  frozen_backbone_ = false;
  if (factors_) {
    factors_->merge();
    disown("adaptation");
    factors_ = nullptr;
  }
  for (auto [name, param] : collect_params(*this)) param.set_base(false);
}

bool Network::before_step(int64_t step, const Rng& rng) {
  if (!frozen_backbone_) return Layer::before_step(step, rng);
  bool changed = false;
  for (const auto& objective : objectives)
    changed = objective->before_step(step, Rng(rng.key(objective->head_name()))) || changed;
  return changed;
}

namespace {

/// Flat indices of the hidden states that these objectives use, ascending; undefined: all. They are found on the CPU,
/// where nobody waits for their number.
Tensor read_positions(const std::vector<std::shared_ptr<Objective>>& heads, const Batch& batch) {
  std::vector<Tensor> indices;
  for (const auto& objective : heads) {
    if (!objective->reads_backbone()) continue;
    indices.push_back(objective->read_positions(batch.host()));
    if (!indices.back().defined()) return {};
  }
  const auto all = indices.size() == 1 ? indices[0] : std::get<0>(at::_unique(at::cat(indices)));
  if (batch.unpadded) require_real(all, batch.host().attention_mask);
  if (all.is_same(batch.host().positions)) return batch.positions;
  return moved_to(all, batch.input_ids.device());
}

}  // namespace

Network::Heads Network::active_objectives() const {
  Heads active;
  std::copy_if(objectives.begin(), objectives.end(), std::back_inserter(active),
               [](const auto& objective) { return objective->active(); });
  if (distillation_ && is_training()) active.push_back(distillation_);
  return active;
}

std::vector<LossPart> Network::losses(const Batch& batch, uint64_t dropout_key, std::vector<Tensor>* new_mems) {
  return losses_of(active_objectives(), batch, dropout_key, new_mems);
}

const std::shared_ptr<Objective>& Network::objective_at(const std::string& head) const {
  for (const auto& objective : objectives)
    if (objective->head_name() == head) return objective;
  fail<ConfigError>("the network has no head for '", head, "'");
}

std::vector<LossPart> Network::losses_at(const std::string& head, const Batch& batch, uint64_t dropout_key) {
  return losses_of({objective_at(head)}, batch, dropout_key, nullptr);
}

std::vector<LossPart> Network::losses_of(const Heads& heads, Batch batch, uint64_t dropout_key,
                                         std::vector<Tensor>* new_mems) {
  batch.dropout_key = dropout_key;
  if (factors_) factors_->begin_pass(dropout_key);
  std::vector<std::vector<LossPart>> early(heads.size());
  bool reads = false, reads_layers = false;
  Traces layers;
  layers.encoder.keeps_attentions = layers.decoder.keeps_attentions = false;
  for (size_t k = 0; k < heads.size(); ++k) {
    early[k] = heads[k]->rewrite(batch, dropout_key);
    reads = reads || heads[k]->reads_backbone();
    reads_layers = reads_layers || heads[k]->reads_layers();
    layers.encoder.keeps_projections = layers.encoder.keeps_projections || heads[k]->reads_projections();
  }
  Tensor hidden;
  if (frozen_backbone_) backbone->eval();
  const bool records = at::GradMode::is_enabled();
  const at::AutoGradMode graph(records && !frozen_backbone_);
  if (reads) {
    Inputs inputs = batch;
    inputs.read_positions = read_positions(heads, batch);
    inputs.padding_is_unread = true;
    inputs.new_mems = new_mems;
    hidden = backbone->hidden(inputs, reads_layers ? &layers : nullptr);
  }
  const at::AutoGradMode graph_of_heads(records);
  std::vector<LossPart> all;
  for (size_t k = 0; k < heads.size(); ++k) {
    for (auto& part : early[k]) {
      part.of_rewrite = true;
      all.push_back(std::move(part));
    }
    for (auto& part : heads[k]->layer_losses(*backbone, hidden, batch, layers)) all.push_back(std::move(part));
  }
  return all;
}

std::vector<LossPart> Network::parts(const Batch& batch) const {
  std::vector<LossPart> all;
  for (const auto& objective : active_objectives())
    for (auto& part : objective->parts(batch)) all.push_back(std::move(part));
  return all;
}

Cost Network::cost(const std::vector<RowSizes>& rows) const {
  Cost sum;
  bool reads = objectives.empty();
  for (const auto& objective : active_objectives()) {
    sum += objective->cost(*backbone, rows);
    reads = reads || objective->reads_backbone();
  }
  if (reads) sum.trained += backbone->multiply_adds(rows);
  return sum;
}

double Network::training_flops(std::vector<RowSizes> rows, bool is_whole) const {
  for (auto& row : rows) row.is_whole = is_whole;
  return cost(rows).training_flops();
}

namespace {

/// Adds to `size` of each row the number of these flat indices into [B width] that lie in it; undefined: none.
void count_in_rows(const Tensor& positions, int64_t width, std::vector<RowSizes>& rows, double RowSizes::* size) {
  if (!positions.defined() || positions.numel() == 0) return;
  const auto counts = at::bincount(positions.to(at::kCPU).div(width, "floor"), {}, static_cast<int64_t>(rows.size()));
  for (size_t r = 0; r < rows.size(); ++r) rows[r].*size += static_cast<double>(counts.data_ptr<int64_t>()[r]);
}

}  // namespace

std::vector<RowSizes> Network::row_sizes(const Batch& batch) const {
  const int64_t width = batch.input_ids.size(1);
  const auto active = active_objectives();
  const bool reads = std::any_of(active.begin(), active.end(), [](const auto& o) { return o->reads_backbone(); });
  const auto read = reads ? read_positions(active, batch) : Tensor();
  const auto lengths = batch.attention_mask.defined() ? batch.attention_mask.sum(1).to(at::kCPU) : Tensor();
  const auto prefixes = batch.prefix.defined() ? batch.prefix.to(at::kCPU) : Tensor();
  std::vector<RowSizes> rows(static_cast<size_t>(batch.input_ids.size(0)));
  // Every position of the decoder and every query of the query stream predicts a token; the others are padding.
  int64_t predicted_width = width;
  if (batch.decoder_input_ids.defined()) predicted_width = batch.decoder_input_ids.size(1);
  if (batch.target_positions.defined()) predicted_width = batch.target_positions.size(1);
  count_in_rows(batch.positions, predicted_width, rows, &RowSizes::predicted);
  if (read.defined()) count_in_rows(read, width, rows, &RowSizes::read);
  for (size_t r = 0; r < rows.size(); ++r) {
    auto& row = rows[r];
    row.length = static_cast<double>(lengths.defined() ? lengths.data_ptr<int64_t>()[r] : width);
    if (!read.defined()) row.read = row.length;
    if (batch.decoder_input_ids.defined()) row.target_length = row.predicted;
    if (prefixes.defined()) row.prefix = static_cast<double>(prefixes.data_ptr<int64_t>()[r]);
  }
  for (const auto& objective : active) objective->count_predictions(batch, rows);
  return rows;
}

NetworkOutputs Network::outputs(const Inputs& inputs, Traces* traces) {
  Batch batch;
  batch.input_ids = inputs.input_ids;
  batch.attention_mask = inputs.attention_mask;
  return outputs_of(inputs, batch, traces);
}

NetworkOutputs Network::batch_outputs(const Batch& batch, Traces* traces, std::vector<Tensor>* new_mems) {
  Inputs inputs = batch;
  inputs.new_mems = new_mems;
  return outputs_of(inputs, batch, traces);
}

NetworkOutputs Network::outputs_of(Inputs inputs, const Batch& batch, Traces* traces) {
  NetworkOutputs outputs;
  Traces own;
  own.encoder.keeps_attentions = own.decoder.keeps_attentions = false;
  const bool reads_layers = std::ranges::any_of(objectives, [](const auto& one) { return one->reads_layers(); });
  if (reads_layers && !traces) traces = &own;
  if (backbone_of(model_).is_encoder_decoder()) {
    inputs.encoded = backbone->encode(inputs, traces ? &traces->encoder : nullptr);
    outputs.emplace_back("encoder_last_hidden_state", inputs.encoded.states);
  }
  const auto hidden = backbone->hidden(inputs, traces);  // [B, T, D]
  outputs.emplace_back("last_hidden_state", hidden);
  if (backbone->has_pooler()) outputs.emplace_back("pooler_output", backbone->pooled(hidden));
  for (const auto& objective : objectives)
    for (auto& output : objective->batch_outputs(*backbone, hidden, batch, traces)) {
      // Hugging Face's masked language models name their logits `logits`; both names refer to the same tensor.
      if (output.first == "prediction_logits" && objectives.size() == 1) outputs.emplace_back("logits", output.second);
      outputs.push_back(std::move(output));
    }
  return outputs;
}

}  // namespace cloze
