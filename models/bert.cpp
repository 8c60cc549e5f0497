#include <cmath>

#include "core/error.h"
#include "models/families.h"
#include "models/initialization.h"

namespace cloze {

std::shared_ptr<Embeddings> make_embeddings(const EncoderConfig& c, const LentTables& lent) {
  require<ConfigError>(c.vocab_size > 0, "model.vocab_size is 0; name the number of rows of the token embedding");
  require<ConfigError>(c.longest_input() > 0, "model.max_position_embeddings ", c.max_position_embeddings,
                       " leaves no place behind the padding id ", c.pad_token_id, "; raise it");
  require<ConfigError>(!c.freeze_pad_embedding || c.pad_token_id < c.vocab_size, "model.pad_token_id ", c.pad_token_id,
                       " lies outside model.vocab_size ", c.vocab_size, "; name an id of the vocabulary");
  auto made = std::make_shared<Embeddings>(
      EmbeddingSizes{.vocab = c.vocab_size,
                     .width = c.embedding_width(),
                     .positions = c.position_embeddings == "none" || c.scores_distances()
                                      ? 0
                                      : c.max_position_embeddings + c.position_offset,
                     .types = c.token_types ? c.type_vocab_size : 0,
                     .position = c.position_embeddings == "sinusoidal"          ? Init::fixed_sinusoid
                                 : c.position_embeddings == "sinusoidal_halves" ? Init::fixed_sinusoid_halves
                                 : c.position_embeddings == "sinusoidal_start"  ? Init::sinusoid
                                                                                : Init::embedding,
                     .norm = c.embedding_norm,
                     .norm_eps = c.layer_norm_eps,
                     .norm_kind = c.norm_kind,
                     .scale = c.scale_embedding ? std::sqrt(static_cast<double>(c.hidden_size)) : 1},
      lent);
  if (lent.word.defined()) return made;
  if (c.freeze_pad_embedding) made->word.set_frozen_row(c.pad_token_id);
  if (c.freeze_pad_embedding && c.positions_after_padding && made->position.defined())
    made->position.set_frozen_row(c.pad_token_id);
  return made;
}

namespace {

/// BERT (Devlin et al. 2019, section 3) and what descends from it: RoBERTa counts places from behind the padding,
/// ALBERT and ELECTRA project a narrow embedding, ALBERT's layers share weights, DistilBERT has no segments, GPT-2 is
/// causal; so is BART's decoder without an encoder.
struct Bert final : Backbone {
  Bert(const EncoderConfig& c, const BackboneParts& parts)
      : config(c),
        embeddings(parts.embeddings && !parts.own_norm
                       ? parts.embeddings
                       : own("embeddings", make_embeddings(c, parts.embeddings ? LentTables{parts.embeddings->word,
                                                                                            parts.embeddings->position}
                                                                               : LentTables{}))) {
    if (c.always_projects || c.embedding_width() != c.hidden_size)
      projection = own("projection", std::make_shared<Linear>(c.embedding_width(), c.hidden_size));
    if (projection && c.glorot_projection && c.initializer == "truncated_normal") set_xavier(projection->weight);
    stack = own("stack", std::make_shared<Stack>(c));
    if (parts.pooler) pooler = own("pooler", std::make_shared<Linear>(c.hidden_size, c.hidden_size));
  }

  Tensor hidden(const Inputs& in, Traces* traces) override {
    const Dropout drop{.p = config.hidden_dropout_prob, .key = in.dropout_key, .active = is_training()};
    auto x = embeddings->forward({in.input_ids, in.token_type_ids, positions(in.input_ids)}, drop);  // [B, T, E]
    if (projection) x = projection->forward(x);
    return stack->forward(x, {.key_mask = in.attention_mask, .prefix = in.prefix, .global_mask = globals(in)}, drop,
                          traces ? &traces->encoder : nullptr, nullptr, nullptr, in.read_places);
  }

  Tensor decode(const Tensor& ids, const Memory&, std::vector<BlockCache>& cache,
                const Tensor& attention_mask) override {
    if (!config.is_decoder) return Backbone::decode(ids, {}, cache);
    require<ConfigError>(stack->depth() > 0,
                         "a decoder without layers keeps nothing of what it read; give it some (num_hidden_layers)");
    cache.resize(static_cast<size_t>(stack->depth()));
    const auto places = places_behind(ids, cache[0].own);
    const auto positions =
        attention_mask.defined() ? (attention_mask.cumsum(1) - 1).clamp_min(0).gather(1, places) : places;
    auto x = embeddings->forward(
        {ids, {}, positions + (config.positions_after_padding ? config.pad_token_id + 1 : config.position_offset)}, {});
    if (projection) x = projection->forward(x);
    AttentionContext context{.key_mask = attention_mask};
    // What is read at once, before anything else, is the prefix.
    if (config.prefix_lm) context.prefix = at::ones_like(ids).sum(1) * places.select(1, 0).eq(0);
    return stack->forward(x, context, {}, nullptr, nullptr, &cache);
  }

  /// Which tokens see everything, where attention has a window; undefined for none.
  Tensor globals(const Inputs& in) const {
    const auto* window = std::get_if<WindowAttention>(&config.attention);
    if (!window || in.global_attention_mask.defined()) return window ? in.global_attention_mask : Tensor();
    return window->global_tokens == "first" ? at::ones_like(in.input_ids).cumsum(1).eq(1) : Tensor();
  }

  /// int64 [B, T], or undefined for 0, 1, 2, ... Source: fairseq, utils.make_positions.
  Tensor positions(const Tensor& ids) const {
    if (!embeddings->position.defined()) return {};
    if (!config.positions_after_padding)
      return config.position_offset > 0 ? at::ones_like(ids).cumsum(1) + (config.position_offset - 1) : Tensor();
    const auto real = ids.ne(config.pad_token_id).to(at::kLong);
    return real.cumsum(1) * real + config.pad_token_id;
  }

  Tensor pooled(const Tensor& hidden) override {
    require<ShapeError>(pooler != nullptr, "this network was built without a pooler; no objective asked for one");
    return at::tanh(pooler->forward(hidden.select(1, 0)));  // [B, D]
  }

  const Param& token_embedding() const override { return embeddings->word; }
  const std::shared_ptr<Embeddings>& embedding_tables() const override { return embeddings; }
  bool has_pooler() const override { return pooler != nullptr; }
  void set_gradient_checkpointing(bool on) override { stack->gradient_checkpointing = on; }

  EncoderConfig config;
  std::shared_ptr<Embeddings> embeddings;
  std::shared_ptr<Linear> projection, pooler;
  std::shared_ptr<Stack> stack;
};

}  // namespace

Memory Backbone::encode(const Inputs&, Trace*) { fail<ShapeError>("this model has no decoder that reads an encoder"); }
Tensor Backbone::decode(const Tensor&, const Memory&, std::vector<BlockCache>&, const Tensor&) {
  fail<ConfigError>(
      "this model sees both sides of a token, so it writes no text; choose a decoder (gpt2, t5, bart, ...) or fill "
      "blanks with `cloze fill`");
}

Tensor places_behind(const Tensor& ids, const Tensor& past) {
  const auto new_places = at::ones_like(ids).cumsum(1) - 1;
  return past.defined() ? new_places + at::ones_like(past.select(-1, 0), at::kLong).sum(1, /*keepdim=*/true)
                        : new_places;
}

std::shared_ptr<Backbone> make_backbone(const EncoderConfig& config, const BackboneParts& parts) {
  const auto made = config.two_streams          ? make_xlnet(config)
                    : config.is_encoder_decoder ? make_encoder_decoder(config)
                                                : std::make_shared<Bert>(config, parts);
  set_init_ranges(*made, config);
  return made;
}

}  // namespace cloze
