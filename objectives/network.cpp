#include "objectives/network.h"

#include <algorithm>

#include "core/error.h"
#include "objectives/objective.h"

namespace cloze {

namespace {

struct Make {
  const ModelConfig& model;
  std::shared_ptr<Objective> operator()(const MlmConfig& c) const { return make_mlm(c, model); }
  std::shared_ptr<Objective> operator()(const NspConfig& c) const { return make_nsp(c, model); }
};

bool reads_pooler(const ObjectiveConfig& config) { return std::holds_alternative<NspConfig>(config); }

}  // namespace

std::shared_ptr<Objective> make_objective(const ObjectiveConfig& config, const ModelConfig& model) {
  return std::visit(Make{model}, config);
}

Network::Network(const ModelConfig& model, const Objectives& configs) : model_(model) {
  // A bare encoder, without objectives, is Hugging Face's BertModel: it keeps its pooler.
  const bool pooler = configs.empty() || std::any_of(configs.begin(), configs.end(), reads_pooler);
  backbone = own("backbone", make_backbone(model, {.pooler = pooler}));
  for (const auto& config : configs) {
    auto objective = make_objective(config, model);
    for (const auto& other : objectives)
      require<ConfigError>(other->name() != objective->name(), "objective '", objective->name(), "' is given twice; keep one of them");
    objectives.push_back(own(objective->name(), objective));
  }
}

std::vector<LossPart> Network::losses(const Batch& batch, uint64_t dropout_key) {
  const auto hidden = backbone->hidden({.input_ids = batch.input_ids,
                                        .attention_mask = batch.attention_mask,
                                        .token_type_ids = batch.token_type_ids,
                                        .dropout_key = dropout_key});
  std::vector<LossPart> parts;
  for (const auto& objective : objectives) parts.push_back(objective->loss(*backbone, hidden, batch));
  return parts;
}

std::vector<std::pair<std::string, Tensor>> Network::outputs(const Inputs& inputs, Trace* trace) {
  const auto hidden = backbone->hidden(inputs, trace);   // [B, T, D]
  std::vector<std::pair<std::string, Tensor>> found{{"last_hidden_state", hidden}};
  if (backbone->has_pooler()) found.emplace_back("pooler_output", backbone->pooled(hidden));
  for (const auto& objective : objectives)
    for (auto& output : objective->outputs(*backbone, hidden)) {
      // A masked language model alone calls its scores `logits` at Hugging Face; both names lead to the same tensor.
      if (output.first == "prediction_logits" && objectives.size() == 1) found.emplace_back("logits", output.second);
      found.push_back(std::move(output));
    }
  return found;
}

}  // namespace cloze
