#pragma once
// The options and facts of any backbone, and what the rest of the program asks of it, whatever its layers compute.
// Field names are those of Hugging Face's config.json. What it is made of is in transformer_config.h and
// recurrent_config.h.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "models/layers/config.h"
#include "models/layers/cost.h"

namespace cloze {

/// Upper limits of sizes: beyond any model, and small enough that no product of them overflows 64 bits.
namespace limits {
inline constexpr int64_t tokens = 1 << 28;  ///< in a vocabulary, or in a text
inline constexpr int64_t width = 1 << 18;
inline constexpr int64_t inner_width = 1 << 22;
inline constexpr int64_t heads = 1 << 14;
inline constexpr int64_t head_width = 1 << 14;
inline constexpr int64_t layers = 1 << 12;
}  // namespace limits

/// The stacks of a model, and what their tokens read.
enum class Architecture { encoder, decoder, encoder_decoder, two_stream };
constexpr auto choices(Architecture) {
  using enum Architecture;
  return std::array{Choice{encoder, "encoder", "one bidirectional stack"},
                    Choice{decoder, "decoder", "one causal stack"},
                    Choice{encoder_decoder, "encoder_decoder",
                           "a bidirectional stack, and a causal one with cross-attention to its output"},
                    Choice{two_stream, "two_stream", "a content and a query stream over relative positions"}};
}

/// The distribution of the initial weights.
enum class Initializer { truncated_normal, normal, normal_scaled, truncated_normal_scaled, fan_in, xavier };
constexpr auto choices(Initializer) {
  using enum Initializer;
  return std::array{
      Choice{truncated_normal, "truncated_normal", "truncated at two standard deviations"},
      Choice{normal, "normal"},
      Choice{normal_scaled, "normal_scaled",
             "normal, projections into the residual stream divided by sqrt(2 layers), as in GPT-2"},
      Choice{truncated_normal_scaled, "truncated_normal_scaled",
             "normal_scaled truncated at two standard deviations, the dense layer of the prediction head divided too, "
             "as in ModernBERT"},
      Choice{fan_in, "fan_in", "T5's deviations, 1 / sqrt(inputs), for query projections also divided by sqrt(d_kv)"},
      Choice{xavier, "xavier", "uniform, with deviation 1 / sqrt of the mean of inputs and outputs of each matrix"}};
}

/// A normal distribution truncated at two standard deviations.
constexpr bool is_truncated(Initializer initializer) {
  return initializer == Initializer::truncated_normal || initializer == Initializer::truncated_normal_scaled;
}

/// The texts that rows and prompts are made of.
struct TextConfig {
  int64_t bos_token_id = -1;
  int64_t eos_token_id = 1;
  bool prepend_bos = false;  ///< source and target texts begin with [CLS] (<s>)
};

/// The options and facts of a backbone: those of its parts, which read their own struct, and of the whole. A kind of
/// network derives from it and gives its answers; memory is asked before any of it is taken, so from the config.
struct BackboneConfig : virtual LayerSizes, EmbeddingConfig, TokenHeadConfig, NextTokenHeadConfig, TextConfig {
  Architecture architecture = Architecture::encoder;
  std::string like;
  double initializer_range = 0.02;
  Initializer initializer = Initializer::truncated_normal;
  bool tie_word_embeddings = true;

  bool is_encoder() const { return architecture == Architecture::encoder; }
  bool is_decoder() const { return architecture == Architecture::decoder; }
  bool is_encoder_decoder() const { return architecture == Architecture::encoder_decoder; }
  bool is_two_stream() const { return architecture == Architecture::two_stream; }
  /// The model generates text autoregressively.
  bool is_generative() const { return is_decoder() || is_encoder_decoder(); }
  int64_t embedding_width() const { return embedding_size > 0 ? embedding_size : hidden_size; }

  static constexpr int64_t unlimited_length = int64_t{1} << 40;  ///< longer than any text
  /// Maximum input length in tokens.
  virtual int64_t max_input_length() const { return unlimited_length; }
  /// Of a network that reads texts of any length: the tokens of a row for which no single tensor of a layer has more
  /// than so many numbers.
  virtual int64_t longest_row(double numbers) const = 0;
  /// Numbers of the widest activation of a token.
  virtual int64_t widest_activation() const = 0;

  // Estimates of memory, in numbers.
  /// Weights of the matrices of all layers.
  virtual double layer_weights() const = 0;
  /// The tables whose rows are added up to the input of the first layer. A table that is not trained has no gradient,
  /// and counts half.
  virtual double embedding_weights() const { return static_cast<double>(vocab_size) * table_width(); }
  /// An output table that is not the token embedding.
  double output_weights() const {
    return tie_word_embeddings ? 0 : static_cast<double>(vocab_size) * std::min(table_width(), width());
  }
  /// What the layers keep of a token for the backward pass at the least; `recomputes`: with gradient checkpointing.
  virtual double least_activations(bool recomputes) const = 0;
  /// About what layers and head keep of these rows for the backward pass.
  virtual double activations(const std::vector<RowSizes>& rows, bool recomputes) const = 0;
  /// What a row leaves for the next one.
  virtual double carried_numbers() const { return 0; }
  /// The keys that its memory depends on, for messages: `model.hidden_size 768, model.num_hidden_layers 12, ...`.
  virtual std::string sizes() const {
    return concat("model.hidden_size ", hidden_size, ", model.num_hidden_layers ", num_hidden_layers,
                  ", model.vocab_size ", vocab_size);
  }

 protected:
  double width() const { return static_cast<double>(hidden_size); }
  double table_width() const { return static_cast<double>(embedding_width()); }
  /// What a head keeps of these rows: logits of the predicted tokens, and the states of its transform.
  double head_activations(const std::vector<RowSizes>& rows) const {
    return total(rows, &RowSizes::predicted) * (static_cast<double>(vocab_size) + 4 * width());
  }
};

// Options that several kinds of network have.
template <class V>
void describe_vocabulary(V& v, BackboneConfig& c) {
  v("vocab_size", c.vocab_size, "rows of the token embedding; 0 = the size of the tokenizer",
    in_range(0, limits::tokens));
}
template <class V>
void describe_initial_weights(V& v, BackboneConfig& c) {
  v("initializer_range", c.initializer_range, "standard deviation of the initial weights", in_range(0, 10));
  v("initializer", c.initializer, "distribution of the initial weights");
}
template <class V>
void describe_padding(V& v, BackboneConfig& c) {
  v("pad_token_id", c.pad_token_id, "id of the padding token; set from the tokenizer when training",
    in_range(0, limits::tokens));
}
template <class V>
void describe_tying(V& v, BackboneConfig& c) {
  v("tie_word_embeddings", c.tie_word_embeddings, "the prediction head is tied to the token embedding");
}
template <class V>
void describe_text_ids(V& v, BackboneConfig& c) {
  v("bos_token_id", c.bos_token_id,
    "id of the token that begins a text, kept for the export of a model imported without a tokenizer; -1 = unknown",
    in_range(-1, limits::tokens));
  v("eos_token_id", c.eos_token_id,
    "generative models: id of the token that ends a text; -1 = none; set from the tokenizer when training",
    in_range(-1, limits::tokens));
}

}  // namespace cloze
