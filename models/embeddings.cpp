#include "models/embeddings.h"

#include <cmath>

#include "core/error.h"

namespace cloze {

namespace {

/// The initialisation of the position table.
Init position_init(PositionTable table) {
  switch (table) {
    case PositionTable::sinusoidal:
      return Init::fixed_sinusoid;
    case PositionTable::sinusoidal_halves:
      return Init::fixed_sinusoid_halves;
    case PositionTable::sinusoidal_start:
      return Init::sinusoid;
    case PositionTable::learned:
    case PositionTable::none:
      return Init::embedding;
  }
  return Init::embedding;
}

}  // namespace

std::shared_ptr<Embeddings> make_embeddings(const TransformerConfig& c, const TiedTables& tied) {
  require<ConfigError>(c.vocab_size > 0, "model.vocab_size is 0; set it to the number of rows of the token embedding");
  require<ConfigError>(c.max_input_length() > 0, "model.max_position_embeddings ", c.max_position_embeddings,
                       " leaves no position after the padding id ", c.pad_token_id, "; raise it");
  require<ConfigError>(!c.freeze_pad_embedding || c.pad_token_id < c.vocab_size, "model.pad_token_id ", c.pad_token_id,
                       " lies outside model.vocab_size ", c.vocab_size, "; choose an id of the vocabulary");
  const bool has_table = c.positions.table != PositionTable::none;
  auto made = std::make_shared<Embeddings>(
      EmbeddingSizes{.vocab = c.vocab_size,
                     .width = c.embedding_width(),
                     .positions = has_table ? c.max_position_embeddings + c.position_offset : 0,
                     .types = c.token_types ? c.type_vocab_size : 0,
                     .position = position_init(c.positions.table),
                     .norm = c.embedding_norm ? std::optional<NormConfig>(c) : std::nullopt,
                     .scale = c.scale_embedding ? std::sqrt(static_cast<double>(c.hidden_size)) : 1},
      tied);
  if (tied.word.defined()) return made;
  if (c.freeze_pad_embedding) made->word.set_padding_row(c.pad_token_id);
  if (c.freeze_pad_embedding && c.positions_after_padding && made->position.defined())
    made->position.set_padding_row(c.pad_token_id);
  return made;
}

Tensor position_ids_after(const Tensor& ids, const Tensor& past) {
  const auto index = at::ones_like(ids).cumsum(1) - 1;
  return past.defined() ? index + at::ones_like(past.select(-1, 0), at::kLong).sum(1, /*keepdim=*/true) : index;
}

}  // namespace cloze
