#pragma once
// The sizes and the positions of attention, whatever its kind. Field names are those of Hugging Face's config.json.
#include <cstdint>
#include <string>

#include "core/boxed.h"
#include "core/config_rule.h"

namespace cloze {

/// One of the kinds in models/attention/config.h.
struct AttentionKind;
extern template class Boxed<AttentionKind>;
using AttentionConfig = Boxed<AttentionKind>;

/// `full`, `window`, ...
std::string kind_of(const AttentionConfig& attention);
/// Every query scores every key.
bool is_full(const AttentionConfig& attention);
/// The attention is made for max_position_embeddings tokens at most, also in a model without position table.
bool bounds_length(const AttentionConfig& attention);

/// Position embeddings of a stack; relative biases of the scores are separate.
enum class PositionEmbeddings {
  learned,
  sinusoidal,
  sinusoidal_halves,
  sinusoidal_start,
  none,
  relative_key,
  relative_key_query,
  rotary
};
constexpr auto choices(PositionEmbeddings) {
  using enum PositionEmbeddings;
  return std::array{
      Choice{learned, "learned", "a trained table"},
      Choice{sinusoidal, "sinusoidal", "sines and cosines, not trained"},
      Choice{sinusoidal_halves, "sinusoidal_halves", "the same, all sines before all cosines"},
      Choice{sinusoidal_start, "sinusoidal_start", "a trained table, initialised to sines and cosines"},
      Choice{none, "none", "no table, positions enter in attention only"},
      Choice{relative_key, "relative_key",
             "no table, every layer has an embedding for each distance, whose product with the query is "
             "added to the score "
             "(Shaw et al. 2018, equation 5)"},
      Choice{relative_key_query, "relative_key_query",
             "the product with the key is added too (Huang et al. 2020, method 4)"},
      Choice{rotary, "rotary", "no table, queries and keys are rotated by angles of their positions (Su et al. 2021)"}};
}

/// Sizes and options of the attention in every layer of a stack.
struct AttentionSizes {
  int64_t hidden_size = 768;
  int64_t num_attention_heads = 12;
  int64_t d_kv = 0;  ///< head width; 0: hidden_size / num_attention_heads
  int64_t max_position_embeddings = 512;
  PositionEmbeddings position_embeddings = PositionEmbeddings::learned;
  double rope_theta = 10000;
  int64_t relative_positions = 0;
  AttentionConfig attention{};
  bool attention_bias = true;  ///< projections of attention have biases
  bool scale_scores = true;    ///< by 1 / sqrt(C)

  /// Scores use embeddings of distances (relative_key, relative_key_query); there is no position table.
  bool has_relative_keys() const {
    return position_embeddings == PositionEmbeddings::relative_key ||
           position_embeddings == PositionEmbeddings::relative_key_query;
  }
  bool has_position_table() const {
    return position_embeddings != PositionEmbeddings::none && position_embeddings != PositionEmbeddings::rotary &&
           !has_relative_keys();
  }
  int64_t head_width() const { return d_kv > 0 ? d_kv : hidden_size / num_attention_heads; }
  /// Width of all heads together.
  int64_t heads_width() const { return head_width() * num_attention_heads; }
};

}  // namespace cloze
