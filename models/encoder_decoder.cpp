#include "core/error.h"
#include "models/backbone.h"
#include "models/embeddings.h"
#include "models/initialization.h"
#include "models/stack.h"

namespace cloze {

namespace {

constexpr uint32_t decoder_sites = 0x8000;  // first dropout site of the decoder

/// Encoder and decoder stacks, with shared or separate token embeddings.
/// Source: Vaswani et al. 2017, section 3.
struct EncoderDecoder final : Backbone {
  EncoderDecoder(const EncoderDecoderConfig& c, const StackParts& parts)
      : config(c),
        embeddings(own("embeddings", make_embeddings(c, {}))),
        decoder_embeddings(
            own("decoder_embeddings", make_embeddings(c, {.word = c.shared_embeddings ? embeddings->word : Param()}))),
        encoder(own("encoder", std::make_shared<Stack>(c, parts))),
        decoder(own("decoder", std::make_shared<Stack>(c.decoder_stack(), parts, encoder->top))) {}

  EncoderOutput encode(const Inputs& in, Trace* trace) override {
    const auto [ids, context, drop] = encoder->input(in,
                                                     {.ids = in.input_ids,
                                                      .positions = rows(at::ones_like(in.input_ids).cumsum(1) - 1),
                                                      .vectors = in.input_embeddings},
                                                     dropout_of(in, 0), trace);
    return {encoder->forward(embeddings->forward(ids, drop), context, drop, trace), in.attention_mask};
  }

  Tensor hidden(const Inputs& in, Traces* traces) override {
    require<ShapeError>(in.decoder_input_ids.defined(), "an encoder-decoder was run without decoder_input_ids");
    const auto encoded = in.encoded.states.defined() ? in.encoded : encode(in, traces ? &traces->encoder : nullptr);
    const auto x = decoder_embeddings->forward({.ids = in.decoder_input_ids,
                                                .positions = rows(position_ids_after(in.decoder_input_ids, {})),
                                                .vectors = in.decoder_embeddings},
                                               dropout_of(in, decoder_sites));
    return decoder->forward(x, {.key_mask = in.decoder_attention_mask}, dropout_of(in, decoder_sites),
                            traces ? &traces->decoder : nullptr, &encoded);
  }

  Tensor decode(const Tensor& ids, const EncoderOutput& encoded, DecoderState& state, const Tensor&,
                const Tensor&) override {
    require<ConfigError>(decoder->depth() > 0,
                         "a decoder without layers has no key-value cache; raise model.num_decoder_layers");
    decoder->begin(state);
    const auto x =
        decoder_embeddings->forward({.ids = ids, .positions = rows(position_ids_after(ids, state.of_tokens[0]))}, {});
    return decoder->forward(x, {}, {}, nullptr, &encoded, &state);
  }
  bool decodes() const override { return decoder->has_cache(); }

  Dropout dropout_of(const Inputs& in, uint32_t site) const {
    return {.p = config.hidden_dropout_prob, .key = in.dropout_key, .site = site, .active = is_training()};
  }
  /// Rows of the position table for these position ids.
  Tensor rows(const Tensor& position_ids) const {
    return config.position_offset > 0 ? position_ids + config.position_offset : position_ids;
  }

  double multiply_adds(const std::vector<RowSizes>& rows) const override {
    double sum = 0;
    for (const auto& row : rows) {
      const RowSizes source{.length = row.length, .read = row.length};
      const RowSizes target{.length = row.target_length, .read = row.target_length};
      sum += row.count * (encoder->multiply_adds(source) + decoder->multiply_adds(target, row.length));
    }
    return sum;
  }

  Tensor pooled(const Tensor&) override { fail<ShapeError>("an encoder-decoder has no pooler"); }
  const Param& token_embedding() const override { return decoder_embeddings->word; }
  const std::shared_ptr<Embeddings>& embedding_tables() const override { return embeddings; }
  bool has_pooler() const override { return false; }
  void set_gradient_checkpointing(bool on) override {
    encoder->gradient_checkpointing = decoder->gradient_checkpointing = on;
  }

  EncoderDecoderConfig config;
  std::shared_ptr<Embeddings> embeddings, decoder_embeddings;
  std::shared_ptr<Stack> encoder, decoder;
};

}  // namespace

std::shared_ptr<Backbone> make_encoder_decoder(const EncoderDecoderConfig& config, const StackParts& parts) {
  auto made = std::make_shared<EncoderDecoder>(config, parts);
  set_init_ranges(*made, config);
  return made;
}

}  // namespace cloze
