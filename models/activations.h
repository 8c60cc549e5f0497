#pragma once
// The memory of what a forward pass keeps for the backward pass, in elements: estimates for `describe`, next to the
// parts that they are of.
#include "models/encoder_decoder_config.h"
#include "models/two_stream_config.h"

namespace cloze {

/// Elements that a block keeps for each token: its input, queries, keys, values and their mixture, two sums and their
/// norms, two inner activations of the feed-forward layer.
inline double block_activations(const StackConfig& c) {
  return 8 * static_cast<double>(c.hidden_size) + 2 * static_cast<double>(c.intermediate_size);
}

/// Elements that `layers` blocks, each of which keeps `block` for each token, keep together. With gradient
/// checkpointing these are the inputs of the blocks, and the activations of the one that is being recomputed.
inline double stack_activations(double layers, double block, double width, bool gradient_checkpointing) {
  return (gradient_checkpointing ? layers * width + block : layers * block) + width;
}

/// Elements that the stack of a model, of an encoder-decoder the encoder, keeps for each token.
inline double stack_activations(const StackConfig& c, bool gradient_checkpointing) {
  return stack_activations(static_cast<double>(c.num_hidden_layers), block_activations(c),
                           static_cast<double>(c.hidden_size), gradient_checkpointing);
}

/// Elements that a decoder keeps for each target token. A block also keeps the queries, keys, values and mixture of its
/// cross-attention, the sum and its norm.
inline double decoder_activations(const EncoderDecoderConfig& c, bool gradient_checkpointing) {
  const auto width = static_cast<double>(c.hidden_size);
  StackConfig decoder = c;
  decoder.intermediate_size = c.decoder_inner_size();
  return stack_activations(static_cast<double>(c.decoder_layers()), block_activations(decoder) + 6 * width, width,
                           gradient_checkpointing);
}

/// Elements that a head keeps for each token that it predicts: its logits, and the states of its transform.
inline double head_activations(const BackboneConfig& c) {
  return static_cast<double>(c.vocab_size) + 4 * static_cast<double>(c.hidden_size);
}

/// Elements of the mems of a row.
inline double carried_elements(const TwoStreamConfig& c) {
  if (!c.carries_mems()) return 0;
  return static_cast<double>(c.num_hidden_layers * c.mem_len * c.hidden_size);
}

}  // namespace cloze
