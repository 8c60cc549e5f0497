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

/// Layer norm over the last axis, or RMS norm, which has no bias.
struct Norm : Layer {
  Norm(int64_t width, double norm_eps, const std::string& kind = "layer") : weight(own_param("weight", {width}, Init::one)), eps(norm_eps) {
    if (kind == "layer") bias = own_param("bias", {width}, Init::zero);
  }
  Tensor forward(const Tensor& x) const { return layer_norm(x, weight, bias, eps); }
  Param weight, bias;
  double eps;
};

/// The tables that an encoder starts with: tokens, places, and segment types where it has them.
struct EmbeddingSizes {
  int64_t vocab, width, positions, types;   ///< positions 0, types 0: no such table
  Init position = Init::embedding;
  double norm_eps = 1e-12;
  std::string norm_kind = "layer";
};

/// dropout(norm(word + type + position)): the input of a BERT-like encoder.
struct Embeddings : Layer {
  /// `tables`, where given, lends its tokens and positions.
  explicit Embeddings(const EmbeddingSizes& s, const Embeddings* tables = nullptr) {
    word = tables ? tables->word : own_param("word", {s.vocab, s.width}, Init::embedding);
    if (s.positions > 0) position = tables ? tables->position : own_param("position", {s.positions, s.width}, s.position);
    if (s.types > 0) token_type = own_param("token_type", {s.types, s.width}, Init::embedding);
    norm = own("norm", std::make_shared<Norm>(s.width, s.norm_eps, s.norm_kind));
  }
  /// Returns [B, T, E].
  Tensor forward(const EmbeddingIds& in, const Dropout& drop) const {
    return embed(in, {.word = word, .position = position, .type = token_type, .gamma = norm->weight, .beta = norm->bias, .eps = norm->eps}, drop);
  }
  Param word, position, token_type;
  std::shared_ptr<Norm> norm;
};

}  // namespace cloze
