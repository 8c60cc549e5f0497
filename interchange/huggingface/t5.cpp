#include "interchange/huggingface/family.h"
#include "models/families/t5.h"

namespace cloze::huggingface {

namespace {

/// The blocks of the decoder, which the class of an encoder does not read.
Key<EncoderDecoderConfig> decoder_layers() {
  auto key = decoder_size("num_decoder_layers", &EncoderDecoderConfig::num_decoder_layers,
                          &TransformerConfig::num_hidden_layers, nullptr);
  key.read = [read = key.read](EncoderDecoderConfig& c, const ConfigValue& in) {
    const auto name = named_class(in.file);
    const bool unread = name.ends_with("EncoderModel") || name.ends_with("ForTokenClassification");
    read(c, {unread ? json() : in.value, in.file, in.key, in.path});
  };
  return key;
}

/// A key of the buckets of relative positions.
Key<TransformerConfig> of_buckets(const char* name, int64_t BucketBias::* member, int64_t absent) {
  return {
      .name = name,
      .absent = absent,
      .read = [member](
                  TransformerConfig& c,
                  const ConfigValue& in) { std::get<BucketBias>(c.positions.relative).*member = in.as<int64_t>(); },
      .write =
          [member](const TransformerConfig& c) { return json(std::get<BucketBias>(c.positions.relative).*member); }};
}

/// Keys that T5 and mT5 share.
Keys<T5Config> t5_and_mt5_keys() {
  return {
      size("vocab_size", &TransformerConfig::vocab_size, 32128),
      size("d_model", &TransformerConfig::hidden_size, 512),
      {.name = "d_kv",
       .absent = 64,
       .read = [](TransformerConfig& c, const ConfigValue& in) { c.d_kv = in.at_least(1); },
       .write = [](const TransformerConfig& c) { return json(c.head_width()); }},
      size("d_ff", &TransformerConfig::intermediate_size, 2048),
      size("num_layers", &TransformerConfig::num_hidden_layers, 6, 0),
      decoder_layers(),
      size("num_heads", &TransformerConfig::num_attention_heads, 8),
      dropout("dropout_rate", 0.1),
      field("layer_norm_epsilon", &TransformerConfig::layer_norm_eps, 1e-6),
      of_buckets("relative_attention_num_buckets", &BucketBias::buckets, 32),
      of_buckets("relative_attention_max_distance", &BucketBias::max_distance, 128),
      {.name = "feed_forward_proj",
       .absent = "relu",
       .read =
           [](TransformerConfig& c, const ConfigValue& in) {
             const auto activation = in.as<std::string>();
             const bool gated = activation.starts_with("gated-");
             c.feed_forward = gated ? FeedForward::gated : FeedForward::plain;
             c.hidden_act = activation == "gated-gelu"
                                ? Activation::gelu_new
                                : in.choice<Activation>(gated ? activation.substr(6) : activation);
           },
       .write =
           [](const TransformerConfig& c) {
             if (c.feed_forward != FeedForward::gated) return json(name_of(c.hidden_act));
             const auto activation = c.hidden_act == Activation::gelu_new ? Activation::gelu : c.hidden_act;
             return json(concat("gated-", activation));
           }},
      {.name = "pad_token_id",
       .absent = 0,
       .read = [](TransformerConfig& c, const ConfigValue& in) { c.pad_token_id = in.at_least(0); },
       .write = [](const TransformerConfig& c) { return json(c.pad_token_id); }},
      id("eos_token_id", &TransformerConfig::eos_token_id, 1),
      field("decoder_start_token_id", &EncoderDecoderConfig::decoder_start_token_id, 0),
      id("forced_bos_token_id", &EncoderDecoderConfig::forced_bos_token_id, nullptr),
      id("forced_eos_token_id", &EncoderDecoderConfig::forced_eos_token_id, nullptr),
      derived("is_encoder_decoder", true, [](const TransformerConfig& c) { return json(c.is_encoder_decoder()); }),
  };
}

/// The class ties its head whatever the file says, unless the weights differ (`tie_tables`). The value in the file
/// decides whether states are scaled before the head: version 1.1 has false.
Keys<T5Config> t5_keys() {
  return t5_and_mt5_keys() +
         Keys<T5Config>{
             {.name = "tie_word_embeddings",
              .absent = true,
              .read = [](TransformerConfig& c,
                         const ConfigValue& in) { c.tie_word_embeddings = c.scale_decoder_outputs = in.as<bool>(); },
              .write =
                  [](const TransformerConfig& c) { return json(c.tie_word_embeddings || c.scale_decoder_outputs); }},
             {.name = "scale_decoder_outputs",
              .read =
                  [](TransformerConfig& c, const ConfigValue& in) {
                    if (!in.value.is_null()) c.scale_decoder_outputs = in.as<bool>();
                  },
              .write = [](const TransformerConfig& c) { return json(c.scale_decoder_outputs); }}};
}

Keys<T5Config> mt5_keys() {
  return with_defaults(t5_and_mt5_keys(), {{"vocab_size", 250112},
                                           {"d_ff", 1024},
                                           {"num_layers", 8},
                                           {"num_heads", 6},
                                           {"feed_forward_proj", "gated-gelu"}}) +
         Keys<T5Config>{
             {.name = "tie_word_embeddings",
              .absent = true,
              .read =
                  [](TransformerConfig& c, const ConfigValue& in) {
                    c.tie_word_embeddings = in.as<bool>();
                    c.scale_decoder_outputs = false;
                  },
              .write = [](const TransformerConfig& c) { return json(c.tie_word_embeddings); }},
             // T5's class, which reads such a folder too, scales states unless the file says that it does not.
             derived("scale_decoder_outputs", nullptr, [](const TransformerConfig&) { return json(false); })};
}

Names block_names(bool decoder, bool gated) {
  const std::string feed_forward = decoder ? "layer.2." : "layer.1.";
  return {{"attention.qkv.", {"layer.0.SelfAttention.q.", "layer.0.SelfAttention.k.", "layer.0.SelfAttention.v."}},
          {"attention.output.", {"layer.0.SelfAttention.o."}},
          {"attention_norm.", {"layer.0.layer_norm."}},
          {"cross_attention.query.", {"layer.1.EncDecAttention.q."}},
          {"cross_attention.key_value.", {"layer.1.EncDecAttention.k.", "layer.1.EncDecAttention.v."}},
          {"cross_attention.output.", {"layer.1.EncDecAttention.o."}},
          {"cross_norm.", {"layer.1.layer_norm."}},
          {"intermediate.", {feed_forward + (gated ? "DenseReluDense.wi_0." : "DenseReluDense.wi.")}},
          {"gate.", {feed_forward + "DenseReluDense.wi_1."}},
          {"output_norm.", {feed_forward + "layer_norm."}},
          {"output.", {feed_forward + "DenseReluDense.wo."}}};
}

/// One table of tokens is "shared", also where the encoder is alone.
ParameterNames t5_names(const ModelConfig& model) {
  const auto& c = transformer_of(model);
  const bool gated = c.feed_forward == FeedForward::gated;
  const auto heads = task_heads({.dense = "classification_head.dense.", .output = "classification_head.out_proj."});
  if (!c.is_encoder_decoder())
    return {.outer = Names{{"backbone.embeddings.word", {"shared.weight"}},
                           {"backbone.stack.relative_attention_bias",
                            {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"}},
                           {"backbone.stack.final_norm.", {"encoder.final_layer_norm."}},
                           {"lm.head.decoder", {"lm_head.weight"}}} +
                     heads,
            .stacks = {{"backbone.stack.", numbered("encoder.block."), block_names(false, gated)}}};
  const bool shared = shares_embeddings(model);
  return {
      .outer = Names{{"backbone.embeddings.word", {shared ? "shared.weight" : "encoder.embed_tokens.weight"}},
                     {"backbone.decoder_embeddings.word", {shared ? "shared.weight" : "decoder.embed_tokens.weight"}},
                     {"backbone.encoder.relative_attention_bias",
                      {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"}},
                     {"backbone.decoder.relative_attention_bias",
                      {"decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"}},
                     {"backbone.encoder.final_norm.", {"encoder.final_layer_norm."}},
                     {"backbone.decoder.final_norm.", {"decoder.final_layer_norm."}},
                     {"lm.head.decoder", {"lm_head.weight"}}} +
               heads,
      .stacks = {{"backbone.encoder.", numbered("encoder.block."), block_names(false, gated)},
                 {"backbone.decoder.", numbered("decoder.block."), block_names(true, gated)}}};
}

/// mT5 ties its head without scaling states, which T5's class cannot.
bool is_mt5(const TransformerConfig& c) { return c.tie_word_embeddings && !c.scale_decoder_outputs; }

Family t5_like(const char* model_type, const char* class_prefix, const Keys<T5Config>& keys) {
  using enum Architecture;
  return {.model_type = model_type,
          .class_prefix = class_prefix,
          .table = {T5Config{}, keys},
          .classes = {{"ForConditionalGeneration", {default_objective<SpanCorruptionConfig>()}, encoder_decoder},
                      {"EncoderModel", {}, encoder},
                      {"Model", {}, encoder_decoder},
                      task_class("ForSequenceClassification", Head::texts, encoder_decoder, "transformer."),
                      task_class("ForTokenClassification", Head::tags, encoder, "transformer."),
                      task_class("ForQuestionAnswering", Head::spans, encoder_decoder)},
          .prefix = "",
          .names = t5_names,
          .embedding_alias = "encoder.embed_tokens.weight",
          .positions = {PositionEmbeddings::none},
          .feed_forward = {FeedForward::plain, FeedForward::gated},
          .always_tied = true,
          .dropout_keys = {{Head::texts, "classifier_dropout"}, {Head::tags, "classifier_dropout"}}};
}

}  // namespace

Family t5() {
  auto family = t5_like("t5", "T5", t5_keys());
  family.describes = [](const TransformerConfig& c) { return !is_mt5(c); };
  return family;
}

Family mt5() {
  auto family = t5_like("mt5", "MT5", mt5_keys());
  family.describes = is_mt5;
  return family;
}

}  // namespace cloze::huggingface
