#pragma once
// The pieces that stacks are made of: parameters with their names, and the operator that each one feeds.
#include "core/tensor/ops.h"
#include "models/layers/config.h"

namespace cloze {

/// x W' + b, or x W'; `stacked` such maps side by side, of `out` together.
struct Linear : Layer {
  Linear(int64_t in, int64_t out, bool with_bias = true, int64_t stacked = 1)
      : weight(own_param("weight", {out, in}, Init::weight)) {
    if (with_bias) bias = own_param("bias", {out}, Init::zero);
    weight.set_stacked(stacked);
    if (with_bias) bias.set_stacked(stacked);
  }
  Tensor forward(const Tensor& x) const { return linear(x, weight, bias); }
  Param weight, bias;
};

/// Layer norm over the last axis, or RMS norm, which has no bias.
struct Norm : Layer {
  Norm(int64_t width, double norm_eps, NormKind kind = NormKind::layer)
      : weight(own_param("weight", {width}, Init::one)), eps(norm_eps) {
    if (kind == NormKind::layer) bias = own_param("bias", {width}, Init::zero, Role::norm);
  }
  Tensor forward(const Tensor& x) const { return layer_norm(x, weight, bias, eps); }
  Param weight, bias;
  double eps;
};

/// The tables that a stack starts with: tokens, places, and segment types where it has them.
struct EmbeddingSizes {
  int64_t vocab, width, positions, types;  ///< positions 0, types 0: no such table
  Init position = Init::embedding;
  bool norm = true;
  double norm_eps = 1e-12;
  NormKind norm_kind = NormKind::layer;
  double scale = 1;  ///< of token embeddings
};
/// Tables of another network that are used here as well; undefined ones are not.
struct TiedTables {
  Param word{}, position{};
};

/// dropout(norm(word + type + position)): the input of a stack.
struct Embeddings : Layer {
  explicit Embeddings(const EmbeddingSizes& s, const TiedTables& tied = {}) : norm_eps(s.norm_eps), scale(s.scale) {
    word = tied.word.defined() ? tied.word : own_param("word", {s.vocab, s.width}, Init::embedding);
    if (s.positions > 0)
      position = tied.position.defined() ? tied.position : own_param("position", {s.positions, s.width}, s.position);
    if (s.types > 0) token_type = own_param("token_type", {s.types, s.width}, Init::embedding);
    if (s.norm) norm = own("norm", std::make_shared<Norm>(s.width, s.norm_eps, s.norm_kind));
  }
  /// Returns [B, T, E].
  Tensor forward(const EmbeddingIds& in, const Dropout& drop) const {
    return embed(in,
                 {.word = word,
                  .position = position,
                  .type = token_type,
                  .gamma = norm ? norm->weight : Param(),
                  .beta = norm ? norm->bias : Param(),
                  .eps = norm_eps,
                  .scale = scale},
                 drop);
  }
  Param word, position, token_type;
  std::shared_ptr<Norm> norm;
  double norm_eps, scale;
};

}  // namespace cloze
