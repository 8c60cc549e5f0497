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
  const PresetValues bert{{"epsilon", "1e-6"}, {"bias_correction", "false"}};
  const PresetValues torch{{"epsilon", "1e-8"}, {"bias_correction", "true"}};
  v.like(
      c, "the details of the update follow that code",
      {{"google-bert", bert},
       {"huggingface", torch},
       // fairseq, optim/adam.py and examples/roberta/config/pretraining/base.yaml
       {"fairseq-roberta",
        {{"beta2", "0.98"},
         {"epsilon", "1e-6"},
         {"epsilon_hat", "true"},
         {"bias_correction", "true"},
         {"decay_norm_and_bias", "true"},
         {"max_grad_norm", "0"}}},
       // facebookresearch/SpanBERT, pretraining/README.md and pretraining/fairseq/optim/adam.py
       {"spanbert",
        {{"epsilon", "1e-8"},
         {"epsilon_hat", "true"},
         {"bias_correction", "true"},
         {"decay_norm_and_bias", "true"},
         {"max_grad_norm", "1"}}},
       {"electra", bert},
       // Yang et al. 2019, appendix A.4.1; zihangdai/xlnet, model_utils.py, AdamWeightDecayOptimizer
       {"xlnet", {{"epsilon", "1e-6"}, {"bias_correction", "false"}, {"decay_score_biases", "true"}}},
       {"megatron", torch},
       {"albert", {{"kind", "lamb"}, {"epsilon", "1e-6"}, {"bias_correction", "false"}, {"learning_rate", "1.76e-3"}}},
       {"t5", {{"kind", "adafactor"}, {"learning_rate", "1e-2"}, {"weight_decay", "0"}, {"max_grad_norm", "0"}}}});
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
