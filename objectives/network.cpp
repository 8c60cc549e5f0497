#include "objectives/network.h"

#include <algorithm>

#include "core/error.h"
#include "models/initialization.h"
#include "objectives/objective.h"

namespace cloze {

namespace {

struct Make {
  const BackboneConfig& model;
  const Backbone& backbone;
  std::shared_ptr<Objective> operator()(const MlmConfig& c) const { return make_mlm(c, model); }
  std::shared_ptr<Objective> operator()(const NspConfig& c) const { return make_nsp(c, model); }
  std::shared_ptr<Objective> operator()(const SopConfig& c) const { return make_sop(c, model); }
  std::shared_ptr<Objective> operator()(const RtdConfig& c) const { return make_rtd(c, model, backbone); }
  std::shared_ptr<Objective> operator()(const SboConfig& c) const { return make_sbo(c, model); }
  std::shared_ptr<Objective> operator()(const MntpConfig& c) const { return make_mntp(c, model); }
  template <std::derived_from<NextTokenTerms> Config>
  std::shared_ptr<Objective> operator()(const Config& c) const {
    return make_next_token(Config::kind, c, model);
  }
};

bool reads_pooler(const ObjectiveConfig& config) {
  return std::holds_alternative<NspConfig>(config) || std::holds_alternative<SopConfig>(config);
}

}  // namespace

Network::Network(const ModelConfig& model, const Objectives& configs) : model_(model) {
  const auto& base = backbone_of(model);
  const bool pooler =
      configs.empty() ? base.base_model_has_pooler : std::any_of(configs.begin(), configs.end(), reads_pooler);
  backbone = own("backbone", make_backbone(model, {.pooler = pooler || base.pooler}));
  if (!pooler && base.pooler)
    for (auto [name, param] : collect_params(*backbone))
      if (name.starts_with("pooler.")) param.set_frozen(true);
  for (const auto& config : configs) {
    auto objective = std::visit(Make{base, *backbone}, config);
    for (const auto& other : objectives)
      require<ConfigError>(other->head_name() != objective->head_name(), "objectives '", other->name(), "' and '",
                           objective->name(),
                           other->name() == objective->name() ? "' are the same" : "' both predict the next token",
                           "; keep one of them");
    set_init_ranges(*objective, base);
    objectives.push_back(own(objective->head_name(), objective));
  }
}

bool Network::is_probed(const std::string& name) {
  return name.starts_with("backbone.") && !name.starts_with("backbone.pooler.");
}

void Network::freeze_backbone() {
  frozen_backbone_ = true;
  for (auto [name, param] : collect_params(*this))
    if (is_probed(name)) param.set_frozen(true);
}

namespace {

/// Flat indices of the hidden states that these objectives use, ascending; undefined: all.
Tensor read_positions(const std::vector<std::shared_ptr<Objective>>& heads, const Batch& batch) {
  std::vector<Tensor> indices;
  for (const auto& objective : heads) {
    if (!objective->reads_backbone()) continue;
    indices.push_back(objective->read_positions(batch));
    if (!indices.back().defined()) return {};
  }
  return indices.size() == 1 ? indices[0] : std::get<0>(at::_unique(at::cat(indices)));
}

}  // namespace

Network::Heads Network::active_objectives() const {
  Heads active;
  std::copy_if(objectives.begin(), objectives.end(), std::back_inserter(active),
               [](const auto& objective) { return objective->active(); });
  return active;
}

std::vector<LossPart> Network::losses(const Batch& batch, uint64_t dropout_key, std::vector<Tensor>* new_mems) {
  return losses_of(active_objectives(), batch, dropout_key, new_mems);
}

std::vector<LossPart> Network::losses_at(const std::string& head, const Batch& batch, uint64_t dropout_key) {
  for (const auto& objective : objectives)
    if (objective->head_name() == head) return losses_of({objective}, batch, dropout_key, nullptr);
  fail<ConfigError>("the network has no head for '", head, "'");
}

std::vector<LossPart> Network::losses_of(const Heads& heads, Batch batch, uint64_t dropout_key,
                                         std::vector<Tensor>* new_mems) {
  std::vector<std::vector<LossPart>> early(heads.size());
  bool reads = false;
  for (size_t k = 0; k < heads.size(); ++k) {
    early[k] = heads[k]->rewrite(batch, dropout_key);
    reads = reads || heads[k]->reads_backbone();
  }
  Tensor hidden;
  if (frozen_backbone_) backbone->eval();
  const bool records = at::GradMode::is_enabled();
  const at::AutoGradMode graph(records && !frozen_backbone_);
  if (reads)
    hidden = backbone->hidden({.input_ids = batch.input_ids,
                               .attention_mask = batch.attention_mask,
                               .token_type_ids = batch.token_type_ids,
                               .global_attention_mask = batch.global_attention_mask,
                               .read_positions = read_positions(heads, batch),
                               .prefix = batch.prefix,
                               .decoder_input_ids = batch.decoder_input_ids,
                               .decoder_attention_mask = batch.decoder_attention_mask,
                               .visible = batch.visible,
                               .target_positions = batch.target_positions,
                               .backward = batch.backward,
                               .mems = batch.mems,
                               .new_mems = new_mems,
                               .dropout_key = dropout_key});
  const at::AutoGradMode graph_of_heads(records);
  std::vector<LossPart> all;
  for (size_t k = 0; k < heads.size(); ++k) {
    for (auto& part : early[k]) all.push_back(std::move(part));
    if (!heads[k]->reads_backbone()) continue;
    for (auto& part : heads[k]->losses(*backbone, hidden, batch)) all.push_back(std::move(part));
  }
  return all;
}

std::vector<LossPart> Network::parts(const Batch& batch) const {
  std::vector<LossPart> all;
  for (const auto& objective : objectives) {
    if (!objective->active()) continue;
    for (auto& part : objective->parts(batch)) all.push_back(std::move(part));
  }
  return all;
}

std::vector<std::pair<std::string, Tensor>> Network::outputs(const Inputs& given, Traces* traces) {
  auto inputs = given;
  std::vector<std::pair<std::string, Tensor>> found;
  if (backbone_of(model_).is_encoder_decoder()) {
    inputs.encoded = backbone->encode(inputs, traces ? &traces->encoder : nullptr);
    found.emplace_back("encoder_last_hidden_state", inputs.encoded.states);
  }
  const auto hidden = backbone->hidden(inputs, traces);  // [B, T, D]
  found.emplace_back("last_hidden_state", hidden);
  if (backbone->has_pooler()) found.emplace_back("pooler_output", backbone->pooled(hidden));
  for (const auto& objective : objectives)
    for (auto& output : objective->outputs(*backbone, hidden)) {
      // Hugging Face's masked language models name their logits `logits`; both names refer to the same tensor.
      if (output.first == "prediction_logits" && objectives.size() == 1) found.emplace_back("logits", output.second);
      found.push_back(std::move(output));
    }
  return found;
}

}  // namespace cloze
