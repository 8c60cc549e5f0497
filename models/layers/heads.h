#pragma once
// Prediction heads.
#include "models/layers/layers.h"

namespace cloze {

/// The MLM head: dense, activation, norm, then the output embedding (tied or untied) and a bias.
/// Source: Devlin et al. 2019, section 3.1, and the transform of google-research/bert.
struct TokenHead : Layer {
  TokenHead(int64_t hidden_size, int64_t embedding_size, int64_t vocab_size, std::string activation_name,
            double norm_eps, NormKind norm_kind, bool tied)
      : transform(own("transform", std::make_shared<Linear>(hidden_size, embedding_size))),
        norm(own("norm", std::make_shared<Norm>(embedding_size, norm_eps, norm_kind))),
        bias(own_param("bias", {vocab_size}, Init::zero)),
        act(std::move(activation_name)) {
    if (!tied) decoder = own_param("decoder", {vocab_size, embedding_size}, Init::weight, Role::embedding);
  }
  /// hidden [..., D]; returns [..., E], to be multiplied with the output embedding.
  Tensor transformed(const Tensor& hidden) const {
    return norm->forward(linear_activation(hidden, transform->weight, transform->bias, act));
  }
  const Param& table(const Param& token_embedding) const { return decoder.defined() ? decoder : token_embedding; }

  std::shared_ptr<Linear> transform;
  std::shared_ptr<Norm> norm;
  Param bias, decoder;
  std::string act;
};

}  // namespace cloze
