#pragma once
// The section `optimizer` of a run.
#include <string>
#include <variant>
#include <vector>

#include "core/config/config_rule.h"
#include "core/config/kinds.h"

namespace cloze {

/// The moments of Adam, and how they become a direction.
struct AdamMoments {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  bool epsilon_hat = false;
  bool bias_correction = true;
};
template <class V>
void describe(V& v, AdamMoments& c) {
  v("beta1", c.beta1, "decay of the first moment", in_range(0, 1, open_end));
  v("beta2", c.beta2, "decay of the second moment", in_range(0, 1, open_end));
  v("epsilon", c.epsilon, "added to the square root of the second moment", in_range(0, 1));
  v("epsilon_hat", c.epsilon_hat,
    "epsilon is added before the bias correction of the second moment and is corrected with it, as in fairseq and "
    "TensorFlow (Kingma and Ba 2015, end of section 2)");
  v("bias_correction", c.bias_correction, "moments are divided by 1 - beta^t");
}

/// Source: Loshchilov and Hutter 2019, algorithm 2 (arXiv 1711.05101).
struct AdamW : AdamMoments {
  static constexpr const char* kind = "adamw";
  static constexpr const char* words = "";
};
template <class V>
void describe(V& v, AdamW& c) {
  describe(v, static_cast<AdamMoments&>(c));
}

/// Source: You et al. 2020, algorithm 2 (arXiv 1904.00962), norms of whole tensors, not clamped, as in
/// google-research/albert.
struct Lamb : AdamMoments {
  static constexpr const char* kind = "lamb";
  static constexpr const char* words = "the step of each tensor is scaled to the norm of the tensor";
};
template <class V>
void describe(V& v, Lamb& c) {
  describe(v, static_cast<AdamMoments&>(c));
}

/// Source: Shazeer and Stern 2018, algorithms 4 and 5 (arXiv 1804.04235), without a first moment, as in Mesh
/// TensorFlow's T5. Differs: weight decay is decoupled; a tensor of three axes is treated as a matrix with its last
/// axis as columns (there the two longest axes are factored).
struct Adafactor {
  static constexpr const char* kind = "adafactor";
  static constexpr const char* words =
      "factored second moments (rows and columns), which decay by 1 - t^-0.8, no first moment, steps in proportion to "
      "the weights";
};
template <class V>
void describe(V&, Adafactor&) {}

/// The factor on a step of Muon.
enum class MuonScale { rows, adamw };
constexpr auto choices(MuonScale) {
  return std::array{
      Choice{MuonScale::rows, "rows", "sqrt(max(1, rows / columns)) (Jordan et al. 2024)"},
      Choice{MuonScale::adamw, "adamw",
             "0.2 sqrt(max(rows, columns)), by which steps are as long as those of AdamW (Liu et al. 2025)"}};
}

/// Source: Jordan et al. 2024; the scale `adamw`: Liu et al. 2025, section 2.2 (arXiv 2502.16982).
struct Muon {
  static constexpr const char* kind = "muon";
  static constexpr const char* words =
      "the step of a matrix is made orthogonal by five Newton-Schulz iterations; for a group of matrices";
  double momentum = 0.95;
  MuonScale scale = MuonScale::rows;
};
template <class V>
void describe(V& v, Muon& c) {
  v("momentum", c.momentum, "decay of Nesterov's momentum", in_range(0, 1, open_end));
  v("scale", c.scale, "the factor on the step of a matrix");
}

/// The update of an optimizer step.
struct UpdateRule : std::variant<AdamW, Lamb, Adafactor, Muon> {
  using variant::variant;
};
inline void keep_shared(const UpdateRule& from, UpdateRule& to) { keep_parts<AdamMoments>(from, to); }

/// How parameters are updated.
struct UpdateOptions {
  std::string like;
  UpdateRule rule{};
  double learning_rate = 1e-4;
  double weight_decay = 0.01;
  bool decay_norm_and_bias = false;
  bool decay_score_biases = false;
};

/// What parameters are for.
enum class ParameterRole { any, weight, embedding, bias, score_bias, norm };
constexpr auto choices(ParameterRole) {
  using enum ParameterRole;
  return std::array{
      Choice{any, "any"},   Choice{weight, "weight", "of linear maps: matrices"},    Choice{embedding, "embedding"},
      Choice{bias, "bias"}, Choice{score_bias, "score_bias", "of attention scores"}, Choice{norm, "norm"}};
}

/// Parameters that are updated in a way of their own.
struct ParameterGroup : UpdateOptions {
  ParameterRole role = ParameterRole::any;
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
std::string rules_of(const OptimizerConfig& config);

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
