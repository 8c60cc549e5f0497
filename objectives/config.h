#pragma once
// What is asked of a network, as it stands in YAML.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/config.h"

namespace cloze {

/// Masked language modelling: some tokens are chosen, hidden, and predicted.
/// Source: Devlin et al. 2019, section 3.1 (arXiv 1810.04805), and the code that `like` names.
struct MlmConfig {
  static constexpr const char* kind = "mlm";
  std::string like;
  double weight = 1.0;
  double mlm_probability = 0.15;
  std::string count = "rounded";
  int64_t max_predictions_per_seq = 0;
  bool count_special = true;
  std::string unit = "token";
  double mask_prob = 0.8;
  double random_prob = 0.1;
  std::string random_from = "vocabulary";
  std::string draw_per = "token";
};

template <class V>
void describe(V& v, MlmConfig& c) {
  v.like(c, "masking as in that code",
         {{"google-bert",
           [](MlmConfig& m) {
             m.count = "rounded", m.count_special = true, m.random_from = "vocabulary", m.draw_per = "token";
           }},
          {"huggingface",
           [](MlmConfig& m) {
             m.count = "bernoulli", m.count_special = false, m.random_from = "vocabulary", m.draw_per = "token";
           }}});
  v("weight", c.weight, "factor of this loss in the sum", in_range(0, 1e6));
  v("mlm_probability", c.mlm_probability, "share of the tokens that is predicted", in_range(0, 1));
  v("count", c.count,
    "how many: rounded = max(1, round half to even of the share); stochastic = floor(share + u), u uniform; bernoulli = each on its own",
    one_of({"rounded", "stochastic", "bernoulli"}));
  v("max_predictions_per_seq", c.max_predictions_per_seq, "most predictions in a sequence; 0 = no limit", at_least(0));
  v("count_special", c.count_special, "the share is taken of the length with [CLS] and [SEP] (which are never chosen)");
  v("unit", c.unit, "what is chosen: token, or word = every piece of a chosen word", one_of({"token", "word"}));
  v("mask_prob", c.mask_prob, "share of the chosen that becomes [MASK]", in_range(0, 1));
  v("random_prob", c.random_prob, "share of the chosen that becomes a random token; the rest is kept", in_range(0, 1));
  v("random_from", c.random_from, "random tokens: vocabulary = any id, special ones too; words = any but special ones",
    one_of({"vocabulary", "words"}));
  v("draw_per", c.draw_per, "mask, random or keep is drawn for each token, or once for a chosen word", one_of({"token", "word"}));
}

/// Next sentence prediction: does segment B follow segment A? Label 0 = it does, 1 = B is from another document.
/// Source: Devlin et al. 2019, section 3.1.
struct NspConfig {
  static constexpr const char* kind = "nsp";
  double weight = 1.0;
  double random_next_prob = 0.5;
};

template <class V>
void describe(V& v, NspConfig& c) {
  v("weight", c.weight, "factor of this loss in the sum", in_range(0, 1e6));
  v("random_next_prob", c.random_next_prob, "share of the pairs whose second segment is from another document", in_range(0, 1));
}

using ObjectiveConfig = std::variant<MlmConfig, NspConfig>;
using Objectives = std::vector<ObjectiveConfig>;

}  // namespace cloze
