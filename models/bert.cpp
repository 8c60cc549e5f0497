#include "core/error.h"
#include "models/stack.h"

namespace cloze {

namespace {

std::shared_ptr<Embeddings> make_embeddings(const EncoderConfig& c, const Embeddings* tables) {
  require<ConfigError>(c.vocab_size > 0, "model.vocab_size is 0; name the number of rows of the token embedding");
  require<ConfigError>(c.longest_input() > 0, "model.max_position_embeddings ", c.max_position_embeddings, " leaves no place behind the padding id ", c.pad_token_id, "; raise it");
  require<ConfigError>(!c.freeze_pad_embedding || c.pad_token_id < c.vocab_size, "model.pad_token_id ", c.pad_token_id, " lies outside model.vocab_size ", c.vocab_size, "; name an id of the vocabulary");
  auto made = std::make_shared<Embeddings>(EmbeddingSizes{.vocab = c.vocab_size,
                                                          .width = c.embedding_width(),
                                                          .positions = c.position_embeddings == "none" ? 0 : c.max_position_embeddings,
                                                          .types = c.token_types ? c.type_vocab_size : 0,
                                                          .position = c.position_embeddings == "sinusoidal" ? Init::fixed_sinusoid : c.position_embeddings == "sinusoidal_start" ? Init::sinusoid : Init::embedding,
                                                          .norm_eps = c.layer_norm_eps,
                                                          .norm_kind = c.norm_kind}, tables);
  if (tables) return made;
  if (c.freeze_pad_embedding) made->word.set_frozen_row(c.pad_token_id);
  if (c.freeze_pad_embedding && c.positions_after_padding && made->position.defined()) made->position.set_frozen_row(c.pad_token_id);
  return made;
}

/// BERT (Devlin et al. 2019, section 3) and what descends from it: RoBERTa counts places from behind the padding, ALBERT
/// and ELECTRA project a narrow embedding, ALBERT's layers share weights, DistilBERT has no segments.
struct Bert final : Backbone {
  Bert(const EncoderConfig& c, const BackboneParts& parts)
      : config(c),
        embeddings(parts.embeddings && !parts.own_norm ? parts.embeddings : own("embeddings", make_embeddings(c, parts.embeddings.get()))) {
    if (c.always_projects || c.embedding_width() != c.hidden_size)
      projection = own("projection", std::make_shared<Linear>(c.embedding_width(), c.hidden_size));
    stack = own("stack", std::make_shared<Stack>(c));
    if (parts.pooler) pooler = own("pooler", std::make_shared<Linear>(c.hidden_size, c.hidden_size));
  }

  Tensor hidden(const Inputs& in, Trace* trace) override {
    const Dropout drop{.p = config.hidden_dropout_prob, .key = in.dropout_key, .active = is_training()};
    auto x = embeddings->forward({in.input_ids, in.token_type_ids, positions(in.input_ids)}, drop);   // [B, T, E]
    if (projection) x = projection->forward(x);
    return stack->forward(x, {.key_mask = in.attention_mask, .global_mask = globals(in)}, drop, trace);
  }

  /// Which tokens see everything, where attention has a window; undefined for none.
  Tensor globals(const Inputs& in) const {
    const auto* window = std::get_if<WindowAttention>(&config.attention);
    if (!window || in.global_attention_mask.defined()) return window ? in.global_attention_mask : Tensor();
    return window->global_tokens == "first" ? at::ones_like(in.input_ids).cumsum(1).eq(1) : Tensor();
  }

  /// int64 [B, T], or undefined for 0, 1, 2, ... Source: fairseq, utils.make_positions.
  Tensor positions(const Tensor& ids) const {
    if (!config.positions_after_padding || !embeddings->position.defined()) return {};
    const auto real = ids.ne(config.pad_token_id).to(at::kLong);
    return real.cumsum(1) * real + config.pad_token_id;
  }

  Tensor pooled(const Tensor& hidden) override {
    require<ShapeError>(pooler != nullptr, "this network was built without a pooler; no objective asked for one");
    return at::tanh(pooler->forward(hidden.select(1, 0)));   // [B, D]
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

std::shared_ptr<Backbone> make_backbone(const EncoderConfig& config, const BackboneParts& parts) { return std::make_shared<Bert>(config, parts); }

}  // namespace cloze
