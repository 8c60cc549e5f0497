#pragma once
// The pieces that stacks are made of: parameters with their names, and the operator that each one feeds.
#include "core/tensor/ops.h"

namespace cloze {

/// x W' + b.
struct Linear : Layer {
  Linear(int64_t in, int64_t out) : weight(own_param("weight", {out, in}, Init::weight)), bias(own_param("bias", {out}, Init::zero)) {}
  Tensor forward(const Tensor& x) const { return linear(x, weight, bias); }
  Param weight, bias;
};

/// Layer norm over the last axis.
struct Norm : Layer {
  Norm(int64_t width, double norm_eps)
      : weight(own_param("weight", {width}, Init::one)), bias(own_param("bias", {width}, Init::zero)), eps(norm_eps) {}
  Tensor forward(const Tensor& x) const { return layer_norm(x, weight, bias, eps); }
  Param weight, bias;
  double eps;
};

/// dropout(norm(word + type + position)): the input of a BERT-like encoder.
struct Embeddings : Layer {
  Embeddings(int64_t vocab, int64_t width, int64_t positions, int64_t types, double norm_eps)
      : word(own_param("word", {vocab, width}, Init::embedding)),
        position(own_param("position", {positions, width}, Init::embedding)),
        token_type(own_param("token_type", {types, width}, Init::embedding)),
        norm(own("norm", std::make_shared<Norm>(width, norm_eps))) {}
  /// ids, types int64 [B, T]; returns [B, T, E].
  Tensor forward(const Tensor& ids, const Tensor& types, const Dropout& drop) const {
    return embed(ids, types, word, position, token_type, norm->weight, norm->bias, norm->eps, drop);
  }
  Param word, position, token_type;
  std::shared_ptr<Norm> norm;
};

}  // namespace cloze
