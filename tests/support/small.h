#pragma once
// Networks small enough for loops and finite differences.
#include "models/families/backbone.h"
#include "models/families/bert.h"
#include "tests/support/numbers.h"

/// Two layers of width 12 with three heads.
template <class Config = cloze::BertConfig>
Config small() {
  Config c;
  c.vocab_size = 23, c.hidden_size = 12, c.num_hidden_layers = 2, c.num_attention_heads = 3, c.intermediate_size = 20,
  c.max_position_embeddings = 40;
  return c;
}

/// A network with large random weights, in evaluation mode.
inline std::shared_ptr<cloze::Backbone> make(const cloze::ModelConfig& c) {
  auto model = cloze::make_backbone(c, {});
  cloze::initialize(cloze::collect_params(*model), 0.3, false, cloze::Rng(1));
  model->eval();
  return model;
}

/// The attention of a layer, alone.
inline std::shared_ptr<cloze::Attention> attention_of(const cloze::AttentionSizes& c, int64_t layer) {
  cloze::Layer stack;
  return cloze::make_attention(c, layer, *cloze::make_positions(c, false, stack));
}

/// Ids of `small` networks, int64 [rows, columns].
inline at::Tensor some_ids(int64_t rows, int64_t columns) {
  return at::arange(rows * columns, at::kLong).mul(7).remainder(23).view({rows, columns});
}
