#include "run/memory.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/log.h"
#include "models/attention/config.h"
#include "objectives/generator.h"

namespace cloze {

namespace {

double size(int64_t n) { return static_cast<double>(n); }

/// Weights of the matrices of `blocks` blocks.
double stack_weights(const StackConfig& c, double blocks) {
  const double width = size(c.hidden_size), heads = size(c.heads_width()), positions = size(c.max_position_embeddings);
  double sum = 4 * width * heads + (c.feed_forward == FeedForward::gated ? 3 : 2) * width * size(c.intermediate_size);
  if (c.cross_attention) sum += 4 * width * heads;
  sum += size(vectors_of(c.positions, c.max_position_embeddings)) * size(c.head_width());
  if (const auto* projected = std::get_if<LinformerAttention>(&*c.attention))
    sum += (projected->shared_kv_compressed ? 1 : 2) * std::floor(positions / size(projected->compressed)) * positions;
  return blocks * sum;
}

/// The decoder's own blocks, and its tables where it has some; 0 for models of one stack.
double decoder_weights(const ModelConfig& model, double position_table) {
  const auto* both = as<EncoderDecoderConfig>(model);
  if (both == nullptr || !both->is_encoder_decoder()) return 0;
  StackConfig decoder = *both;
  decoder.num_attention_heads = both->decoder_heads();
  decoder.intermediate_size = both->decoder_inner_size();
  decoder.attention = FullAttention{};
  decoder.cross_attention = true;
  const double words = both->shared_embeddings ? 0 : size(both->vocab_size) * size(both->embedding_width());
  return stack_weights(decoder, size(both->decoder_layers())) + position_table + words;
}

/// Blocks of a model with weights of their own.
double own_blocks(const ModelConfig& model) {
  return size(part_of<LayerSharing>(model).groups_of(backbone_of(model).num_hidden_layers));
}

/// The table of positions, in weights: a fixed one has no gradient, and counts half.
double position_weights(const BackboneConfig& c) {
  const auto table = c.positions.table;
  if (table == PositionTable::none) return 0;
  const bool fixed = table == PositionTable::sinusoidal || table == PositionTable::sinusoidal_halves;
  return (fixed ? 0.5 : 1) * size(c.max_position_embeddings) * size(c.embedding_width());
}

/// The tables of tokens, positions and segment types that are added up to the input of a stack.
double embedding_weights(const BackboneConfig& c) {
  const bool has_types = c.token_types && !c.is_two_stream();  // two streams have types relative to each other
  return (size(c.vocab_size) + (has_types ? size(c.type_vocab_size) : 0)) * size(c.embedding_width()) +
         position_weights(c);
}

/// An output table that is not the token embedding.
double output_weights(const BackboneConfig& c) {
  if (c.tie_word_embeddings) return 0;
  return size(c.vocab_size) * size(std::min(c.embedding_width(), c.hidden_size));
}

/// The generators of objectives that have one.
double generator_weights(const RunConfig& config) {
  double sum = 0;
  for (const auto& objective : config.objectives) {
    const auto generator = as_kind(objective).generator(config.model);
    if (!generator) continue;
    const auto& model = backbone_of(generator->model);
    sum += stack_weights(model, own_blocks(generator->model)) + output_weights(model);
    if (generator->own_embeddings) sum += embedding_weights(model);
  }
  return sum;
}

/// The weights of the largest matrices.
double least_weights(const RunConfig& config) {
  const auto& model = backbone_of(config.model);
  const bool has_output = any_that(config.objectives, &ObjectiveKind::predicts_tokens);
  return stack_weights(model, own_blocks(config.model)) + embedding_weights(model) +
         decoder_weights(config.model, position_weights(model)) + (has_output ? output_weights(model) : 0) +
         generator_weights(config);
}

}  // namespace

LeastMemory least_memory(const RunConfig& config, double row_tokens) {
  const auto& model = backbone_of(config.model);
  const double width = size(model.hidden_size), inner = size(model.intermediate_size),
               layers = size(model.num_hidden_layers);
  const double bytes_of_weight = config.init.probe ? 4 : 8;  // in fp32, with its gradient where it is trained
  const double bytes_kept = config.init.probe ? 0 : 2;       // of an activation, in bf16
  const double tokens = size(config.train.batch_size) * std::min(row_tokens, size(config.data.max_seq_length));
  const double kept = config.train.gradient_checkpointing ? width : 2 * width + inner;
  return {.parameters = bytes_of_weight * least_weights(config), .activations = bytes_kept * tokens * layers * kept};
}

double likely_memory(const RunConfig& config, double row_tokens) {
  const auto least = least_memory(config, row_tokens);
  const bool has_moments = part_in<AdamMoments>(config.optimizer.rule) && !config.init.probe;
  const double with_moments = has_moments ? 2 : 1, with_attention = config.train.gradient_checkpointing ? 1 : 2.5;
  return with_moments * least.parameters + with_attention * least.activations;
}

namespace {

double shown_tokens(const RunConfig& config, double row_tokens) {
  return std::round(std::min(row_tokens, size(config.data.max_seq_length)));
}

/// What a step is likely to take, and what the machine has.
std::string likely_need(const RunConfig& config, double row_tokens, double machine) {
  return words("a step with train.batch_size ", config.train.batch_size, " and rows of ",
               shown_tokens(config, row_tokens), " tokens takes about ", bytes(likely_memory(config, row_tokens)),
               ", and the machine has ", bytes(machine), " of memory");
}

constexpr const char* memory_remedy =
    "lower train.batch_size and raise train.accumulation, or set train.gradient_checkpointing=true";

}  // namespace

void require_memory(const RunConfig& config, double row_tokens, double machine) {
  if (config.train.device != "cpu" || machine <= 0) return;
  const auto& model = backbone_of(config.model);
  const auto least = least_memory(config, row_tokens);
  require<ConfigError>(
      least.parameters <= machine, "the model (model.hidden_size ", model.hidden_size, ", model.num_hidden_layers ",
      model.num_hidden_layers, ", model.intermediate_size ", model.intermediate_size, ", model.vocab_size ",
      model.vocab_size, ", model.max_position_embeddings ", model.max_position_embeddings, ") takes at least ",
      bytes(least.parameters), " to train, and the machine has ", bytes(machine), " of memory; choose a smaller model");
  require<ConfigError>(least.parameters + least.activations <= machine, "train.batch_size ", config.train.batch_size,
                       " with rows of ", shown_tokens(config, row_tokens), " tokens takes at least ",
                       bytes(least.parameters + least.activations), ", and the machine has ", bytes(machine),
                       " of memory; ", memory_remedy);
  if (row_tokens <= 0) return;   // the call that knows the text compares the rest
  constexpr double error = 1.5;  // of the estimate
  require<ConfigError>(likely_memory(config, row_tokens) <= error * machine, likely_need(config, row_tokens, machine),
                       "; ", memory_remedy, ", or choose a smaller model");
}

void warn_of_memory(const RunConfig& config, double row_tokens, double machine) {
  if (config.train.device != "cpu" || machine <= 0 || likely_memory(config, row_tokens) <= machine) return;
  log_warning("train", words(likely_need(config, row_tokens, machine), ": the system may kill it; ", memory_remedy));
}

}  // namespace cloze
