#pragma once
// The section `optimizer` of a run.
#include <string>
#include <vector>

#include "core/contains.h"
#include "core/tensor/role.h"
#include "core/text.h"
#include "optimizers/rules.h"

namespace cloze {

/// How parameters are updated.
struct UpdateOptions {
  std::string like;
  UpdateRule rule{};
  double learning_rate = 1e-4;
  double weight_decay = 0.01;
  bool decay_norm_and_bias = false;
  bool decay_score_biases = false;
};

/// Parameters that are updated in a way of their own.
struct ParameterGroup : UpdateOptions {
  Role role = Role::any;
  std::vector<std::string> names{};
};

/// The optimizer.
struct OptimizerConfig : UpdateOptions {
  double max_grad_norm = 1.0;
  double layer_decay = 1.0;
  double head_rate = 0;
  std::vector<ParameterGroup> groups{};
};

/// The kinds of the optimizer and of its groups, each once: `adamw, muon`.
inline std::string rules_of(const OptimizerConfig& config) {
  std::vector<std::string> rules{kind_in(config.rule)};
  for (const auto& group : config.groups)
    if (const auto kind = kind_in(group.rule); !contains(rules, kind)) rules.push_back(kind);
  return listed(rules);
}

/// In what published updates of Adam differ.
inline void set_adam(OptimizerConfig& o, bool bias_correction, double epsilon) {
  auto* adam = part_in<AdamMoments>(o.rule);
  if (!adam) return;
  adam->bias_correction = bias_correction;
  adam->epsilon = epsilon;
}

/// Source: fairseq, optim/adam.py and examples/roberta/config/pretraining/base.yaml.
inline void fairseq_roberta_optimizer(OptimizerConfig& o) {
  set_adam(o, true, 1e-6);
  if (auto* adam = part_in<AdamMoments>(o.rule)) adam->epsilon_hat = true, adam->beta2 = 0.98;
  o.decay_norm_and_bias = true;
  o.max_grad_norm = 0;
}

/// Source: facebookresearch/SpanBERT, pretraining/README.md and pretraining/fairseq/optim/adam.py.
inline void spanbert_optimizer(OptimizerConfig& o) {
  set_adam(o, true, 1e-8);
  if (auto* adam = part_in<AdamMoments>(o.rule)) adam->epsilon_hat = true;
  o.decay_norm_and_bias = true;
  o.max_grad_norm = 1;
}

/// Source: Yang et al. 2019, appendix A.4.1; zihangdai/xlnet, model_utils.py, AdamWeightDecayOptimizer.
inline void xlnet_optimizer(OptimizerConfig& o) {
  set_adam(o, false, 1e-6);
  o.decay_score_biases = true;
}

inline void albert_optimizer(OptimizerConfig& o) {
  choose<Lamb>(o.rule);
  set_adam(o, false, 1e-6);
  o.learning_rate = 1.76e-3;
}

inline void t5_optimizer(OptimizerConfig& o) {
  choose<Adafactor>(o.rule);
  o.learning_rate = 1e-2;
  o.weight_decay = 0;
  o.max_grad_norm = 0;
}

template <class V>
void describe_update(V& v, UpdateOptions& c) {
  v.kind("kind", c.rule, "the update rule");
  v("learning_rate", c.learning_rate, "peak learning rate", in_range(0, 1e3));
  v("weight_decay", c.weight_decay, "decoupled decay, times the learning rate", in_range(0, 10));
  v("decay_norm_and_bias", c.decay_norm_and_bias,
    "weight decay applies to biases and norms too (lamb: so does the trust ratio)");
  v("decay_score_biases", c.decay_score_biases,
    "weight decay applies to biases of attention scores (XLNet's r_w_bias, r_r_bias and r_s_bias, T5's "
    "relative_attention_bias) although it does not apply to other biases");
}

template <class V>
void describe(V& v, ParameterGroup& c) {
  v("role", c.role, "what the parameters of the group are for");
  v("names", c.names, "patterns, of which the name of a parameter matches one; * stands for any text; [] = every name",
    or_none({}));
  describe_update(v, c);
}

template <class V>
void describe(V& v, OptimizerConfig& c) {
  v.like(c, "the details of the update follow that code",
         {{"google-bert", [](OptimizerConfig& o) { set_adam(o, false, 1e-6); }},
          {"huggingface", [](OptimizerConfig& o) { set_adam(o, true, 1e-8); }},
          {"fairseq-roberta", fairseq_roberta_optimizer},
          {"spanbert", spanbert_optimizer},
          {"electra", [](OptimizerConfig& o) { set_adam(o, false, 1e-6); }},
          {"xlnet", xlnet_optimizer},
          {"megatron", [](OptimizerConfig& o) { set_adam(o, true, 1e-8); }},
          {"albert", albert_optimizer},
          {"t5", t5_optimizer}});
  describe_update(v, c);
  v("max_grad_norm", c.max_grad_norm, "global gradient norm above which gradients are scaled down; 0 = never",
    in_range(0, 1e9));
  v("layer_decay", c.layer_decay,
    "factor on the learning rate from a layer to the one below: of n layers, layer i has layer_decay^(n + 1 - i), the "
    "embeddings layer_decay^(n + 2), the head and the pooler 1 (as ELECTRA's code counts); 1 = all have the same",
    in_range(0, 1));
  v("head_rate", c.head_rate, "peak learning rate of the heads and the pooler; 0 = learning_rate", in_range(0, 1e3));
  v.parts("groups", c.groups, static_cast<const UpdateOptions&>(c),
          "parameters that are updated in a way of their own; the first group that a parameter is in counts");
}

}  // namespace cloze
