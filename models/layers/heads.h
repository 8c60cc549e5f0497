#pragma once
// Prediction heads.
#include "models/layers/layers.h"

namespace cloze {

/// Sizes and options of an MLM head.
struct TokenHeadSizes {
  int64_t hidden, embedding, vocab;
  Activation activation;
  NormConfig norm;
  TokenHeadConfig biases;
  bool tied;
};

/// The MLM head: dense, activation, norm, then the output embedding (tied or untied) and a bias.
/// Source: Devlin et al. 2019, section 3.1, and the transform of google-research/bert.
struct TokenHead : Layer {
  explicit TokenHead(const TokenHeadSizes& s)
      : transform(own("transform", std::make_shared<Linear>(s.hidden, s.embedding, s.biases.classifier_bias))),
        norm(own("norm", std::make_shared<Norm>(s.embedding, s.norm))),
        act(s.activation) {
    transform->weight.set_projection(Projection::output);
    if (s.biases.decoder_bias) bias = own_param("bias", {s.vocab}, Init::zero);
    if (!s.tied) decoder = own_param("decoder", {s.vocab, s.embedding}, Init::weight, Role::embedding);
  }
  /// hidden [..., D]; returns [..., E], to be multiplied with the output embedding.
  Tensor transformed(const Tensor& hidden) const {
    return norm->forward(linear_activation(hidden, transform->weight, transform->bias, act));
  }
  const Param& table(const Param& token_embedding) const { return decoder.defined() ? decoder : token_embedding; }
  /// Multiply-adds for one prediction.
  double multiply_adds(const Param& token_embedding) const {
    return transform->multiply_adds() + static_cast<double>(table(token_embedding).value().numel());
  }

  std::shared_ptr<Linear> transform;
  std::shared_ptr<Norm> norm;
  Param bias, decoder;
  Activation act;
};

}  // namespace cloze
