#pragma once
// Basic layers: named parameters, and the operator that each layer calls.
#include <optional>

#include "core/tensor/ops.h"
#include "models/layers/config.h"

namespace cloze {

/// x W' + b, or x W'. `stacked`: the number of projections fused into one matrix, with `out` outputs in all.
struct Linear : Layer {
  Linear(int64_t in, int64_t out, bool with_bias = true, int64_t stacked = 1)
      : weight(own_param("weight", {out, in}, Init::weight)) {
    if (with_bias) bias = own_param("bias", {out}, Init::zero);
    weight.set_stacked(stacked);
    if (with_bias) bias.set_stacked(stacked);
  }
  Tensor forward(const Tensor& x) const { return linear(x, weight, bias); }
  /// Multiply-adds for one row of x.
  double multiply_adds() const { return static_cast<double>(weight.value().numel()); }
  Param weight, bias;
};

/// Layer norm over the last axis, or RMS norm.
struct Norm : Layer {
  Norm(int64_t width, const NormConfig& c) {
    params.gamma = own_param("weight", {width}, Init::one);
    params.eps = c.layer_norm_eps;
    params.centred = c.norm_kind == NormKind::layer;
    if (params.centred && c.norm_bias) params.beta = own_param("bias", {width}, Init::zero, Role::norm);
  }
  Tensor forward(const Tensor& x) const { return layer_norm(x, params); }
  NormParams params;
};

/// Sizes and options of the embedding tables: tokens, positions, segment types.
struct EmbeddingSizes {
  int64_t vocab, width, positions, types;  ///< number of rows; positions 0, types 0: no such table
  Init position = Init::embedding;
  std::optional<NormConfig> norm{};  ///< nullopt: no norm
  double scale = 1;                  ///< factor of token embeddings
};
/// Embedding tables tied to those of another network; undefined: not tied.
struct TiedTables {
  Param word{}, position{};
};

/// dropout(norm(word + type + position)): the input of a stack.
struct Embeddings : Layer {
  explicit Embeddings(const EmbeddingSizes& s, const TiedTables& tied = {}) : scale(s.scale) {
    word = tied.word.defined() ? tied.word : own_param("word", {s.vocab, s.width}, Init::embedding);
    if (s.positions > 0)
      position = tied.position.defined() ? tied.position : own_param("position", {s.positions, s.width}, s.position);
    if (s.types > 0) token_type = own_param("token_type", {s.types, s.width}, Init::embedding);
    if (s.norm) norm = own("norm", std::make_shared<Norm>(s.width, *s.norm));
  }
  /// Returns [B, T, E].
  Tensor forward(const EmbeddingIds& in, const Dropout& drop) const {
    return embed(in,
                 {.word = word,
                  .position = position,
                  .type = token_type,
                  .norm = norm ? norm->params : NormParams{},
                  .scale = scale},
                 drop);
  }
  Param word, position, token_type;
  std::shared_ptr<Norm> norm;
  double scale;
};

}  // namespace cloze
