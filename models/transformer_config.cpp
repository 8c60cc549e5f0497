#include "models/transformer_config.h"

#include <algorithm>
#include <cmath>

#include "models/attention/kinds.h"
#include "models/encoder_decoder_config.h"
#include "models/two_stream_config.h"

namespace cloze {

namespace {

double number(int64_t n) { return static_cast<double>(n); }

/// Weights of the matrices of `blocks` blocks.
double weights_of_blocks(const StackConfig& c, int64_t blocks) {
  const double width = number(c.hidden_size), heads = number(c.heads_width());
  double sum = 4 * width * heads + (c.feed_forward == FeedForward::gated ? 3 : 2) * width * number(c.intermediate_size);
  if (c.cross_attention) sum += 4 * width * heads;
  sum += number(vectors_of(c.positions, c.max_position_embeddings)) * number(c.head_width());
  return number(blocks) * (sum + weights_of_attention(c));
}

/// The table of positions.
double weights_of_positions(const TransformerConfig& c) {
  const auto table = c.positions.table;
  if (table == PositionTable::none) return 0;
  const bool fixed = table == PositionTable::sinusoidal || table == PositionTable::sinusoidal_halves;
  return (fixed ? 0.5 : 1) * number(c.max_position_embeddings) * number(c.embedding_width());
}

/// Numbers that a block keeps of each token: its input, queries, keys, values and their mixture, two sums and their
/// norms, two inner activations of the feed-forward layer.
double activations_of_block(const StackConfig& c) {
  return 8 * number(c.hidden_size) + 2 * number(c.intermediate_size);
}

/// Numbers that `layers` blocks, each of which keeps `block` of each token, keep together. With gradient checkpointing
/// these are the inputs of the blocks, and the activations of the one that is being recomputed.
double activations_of_blocks(int64_t layers, double block, double width, bool recomputes) {
  return (recomputes ? number(layers) * width + block : number(layers) * block) + width;
}

}  // namespace

int64_t TransformerConfig::max_input_length() const {
  const bool sized = positions.table != PositionTable::none || position_facts(positions.relative).bounds_length ||
                     bounds_length(attention);
  const bool after_padding = positions_after_padding && !std::holds_alternative<Rotary>(positions.relative);
  return sized ? max_position_embeddings - (after_padding ? pad_token_id + 1 : 0) : unlimited_length;
}

int64_t TransformerConfig::longest_row(double numbers) const {
  return static_cast<int64_t>(std::sqrt(numbers / number(std::max<int64_t>(num_attention_heads, 1))));  // of scores
}

int64_t TransformerConfig::widest_activation() const { return std::max(intermediate_size, 3 * hidden_size); }

double TransformerConfig::layer_weights() const { return weights_of_blocks(*this, own_blocks()); }

double TransformerConfig::embedding_weights() const {
  const bool has_types = token_types && !is_two_stream();  // two streams have types relative to each other
  return BackboneConfig::embedding_weights() + (has_types ? number(type_vocab_size) : 0) * table_width() +
         weights_of_positions(*this);
}

double TransformerConfig::least_activations(bool recomputes) const {
  return number(num_hidden_layers) * (recomputes ? width() : 2 * width() + number(intermediate_size));
}

double TransformerConfig::activations(const std::vector<RowSizes>& rows, bool recomputes) const {
  return total(rows, &RowSizes::length) *
             activations_of_blocks(num_hidden_layers, activations_of_block(*this), width(), recomputes) +
         head_activations(rows);
}

std::string TransformerConfig::sizes() const {
  return concat("model.hidden_size ", hidden_size, ", model.num_hidden_layers ", num_hidden_layers,
                ", model.intermediate_size ", intermediate_size, ", model.vocab_size ", vocab_size,
                ", model.max_position_embeddings ", max_position_embeddings);
}

StackConfig EncoderDecoderConfig::decoder_stack() const {
  StackConfig decoder = *this;
  decoder.num_hidden_layers = decoder_layers();
  decoder.num_attention_heads = decoder_heads();
  decoder.intermediate_size = decoder_inner_size();
  decoder.attention = FullAttention{};
  decoder.causal = true;
  decoder.cross_attention = true;
  return decoder;
}

double EncoderDecoderConfig::layer_weights() const {
  return TransformerConfig::layer_weights() +
         (is_encoder_decoder() ? weights_of_blocks(decoder_stack(), decoder_layers()) : 0);
}

double EncoderDecoderConfig::embedding_weights() const {
  const double encoder = TransformerConfig::embedding_weights();
  if (!is_encoder_decoder()) return encoder;
  return encoder + weights_of_positions(*this) + (shared_embeddings ? 0 : BackboneConfig::embedding_weights());
}

/// A block of the decoder also keeps the queries, keys, values and mixture of its cross-attention, the sum and its
/// norm.
double EncoderDecoderConfig::activations(const std::vector<RowSizes>& rows, bool recomputes) const {
  return TransformerConfig::activations(rows, recomputes) +
         total(rows, &RowSizes::target_length) *
             activations_of_blocks(decoder_layers(), activations_of_block(decoder_stack()) + 6 * width(), width(),
                                   recomputes);
}

double TwoStreamConfig::carried_numbers() const {
  return carries_mems() ? number(num_hidden_layers * mem_len * hidden_size) : 0;
}

}  // namespace cloze
