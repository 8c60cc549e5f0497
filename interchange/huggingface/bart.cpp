#include "interchange/huggingface/family.h"
#include "models/families/mbart.h"
#include "models/families/pegasus.h"

namespace cloze::huggingface {

namespace {

Keys<EncoderDecoderConfig> bart_keys() {
  return {
      size("vocab_size", &TransformerConfig::vocab_size, 50265),
      size("d_model", &TransformerConfig::hidden_size, 1024),
      size("encoder_layers", &TransformerConfig::num_hidden_layers, 12, 0),
      size("encoder_attention_heads", &TransformerConfig::num_attention_heads, 16),
      size("encoder_ffn_dim", &TransformerConfig::intermediate_size, 4096),
      decoder_size("decoder_layers", &EncoderDecoderConfig::num_decoder_layers, &TransformerConfig::num_hidden_layers,
                   12),
      decoder_size("decoder_attention_heads", &EncoderDecoderConfig::decoder_attention_heads,
                   &TransformerConfig::num_attention_heads, 16),
      decoder_size("decoder_ffn_dim", &EncoderDecoderConfig::decoder_ffn_dim, &TransformerConfig::intermediate_size,
                   4096),
      field("activation_function", &TransformerConfig::hidden_act, Activation::gelu),
      field("dropout", &TransformerConfig::hidden_dropout_prob, 0.1),
      field("attention_dropout", &TransformerConfig::attention_probs_dropout_prob, 0),
      field("activation_dropout", &TransformerConfig::activation_dropout, 0),
      size("max_position_embeddings", &TransformerConfig::max_position_embeddings, 1024),
      field("init_std", &TransformerConfig::initializer_range, 0.02),
      field("scale_embedding", &TransformerConfig::scale_embedding, false),
      field("tie_word_embeddings", &TransformerConfig::tie_word_embeddings, true),
      padding(1),
      id("eos_token_id", &TransformerConfig::eos_token_id, 2),
      derived("bos_token_id", 0, [](const TransformerConfig&) { return json(0); }),
      {.name = "decoder_start_token_id",
       .absent = 2,
       .may_be_null = true,
       // Without a start token, the decoder starts with bos_token_id.
       .read =
           [](EncoderDecoderConfig& c, const ConfigValue& in) {
             auto& start = c.decoder_start_token_id;
             start = 0;
             if (in.value.is_null())
               take(in.file, "bos_token_id", start, in.path);
             else
               start = in.as<int64_t>();
           },
       .write = [](const EncoderDecoderConfig& c) { return json(c.decoder_start_token_id); }},
      id("forced_bos_token_id", &EncoderDecoderConfig::forced_bos_token_id, nullptr),
      id("forced_eos_token_id", &EncoderDecoderConfig::forced_eos_token_id, 2),
      derived("is_encoder_decoder", true, [](const TransformerConfig& c) { return json(c.is_encoder_decoder()); }),
      derived("is_decoder", false, [](const TransformerConfig& c) { return json(c.is_decoder()); }),
  };
}

const Names& block_names() {
  static const Names names{{"attention.qkv.", {"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}},
                           {"attention.output.", {"self_attn.out_proj."}},
                           {"attention_norm.", {"self_attn_layer_norm."}},
                           {"cross_attention.query.", {"encoder_attn.q_proj."}},
                           {"cross_attention.key_value.", {"encoder_attn.k_proj.", "encoder_attn.v_proj."}},
                           {"cross_attention.output.", {"encoder_attn.out_proj."}},
                           {"cross_norm.", {"encoder_attn_layer_norm."}},
                           {"intermediate.", {"fc1."}},
                           {"output_norm.", {"final_layer_norm."}},
                           {"output.", {"fc2."}}};
  return names;
}

/// A decoder alone keeps the names that it has in the whole model.
ParameterNames bart_names(const ModelConfig& model) {
  const bool two = transformer_of(model).is_encoder_decoder(), shared = two && shares_embeddings(model);
  const auto head = Names{{"lm.head.decoder", {"lm_head.weight"}}, {"lm.head.bias", {"final_logits_bias"}}} +
                    task_heads({.dense = "classification_head.dense.", .output = "classification_head.out_proj."});
  const auto embeddings = [&](const char* table, const std::string& side) {
    const auto at = [&](const char* part) { return std::string("backbone.") + table + part; };
    return Names{{at("word"), {shared ? "model.shared.weight" : "model." + side + ".embed_tokens.weight"}},
                 {at("position"), {"model." + side + ".embed_positions.weight"}},
                 {at("norm."), {"model." + side + ".layernorm_embedding."}}};
  };
  if (!two)
    return {.outer = head + embeddings("embeddings.", "decoder") +
                     Names{{"backbone.stack.final_norm.", {"model.decoder.layer_norm."}}},
            .stacks = {{"backbone.stack.", numbered("model.decoder.layers."), block_names()}}};
  return {.outer = head + embeddings("embeddings.", "encoder") + embeddings("decoder_embeddings.", "decoder") +
                   Names{{"backbone.encoder.final_norm.", {"model.encoder.layer_norm."}},
                         {"backbone.decoder.final_norm.", {"model.decoder.layer_norm."}}},
          .stacks = {{"backbone.encoder.", numbered("model.encoder.layers."), block_names()},
                     {"backbone.decoder.", numbered("model.decoder.layers."), block_names()}}};
}

/// final_logits_bias is [1, V] there.
at::Tensor with_axis(const TransformerConfig&, const std::string& name, const at::Tensor& value) {
  return name == "lm.head.bias" ? value.unsqueeze(0) : value;
}
at::Tensor without_axis(const TransformerConfig&, const std::string& name, const at::Tensor& value) {
  return name == "lm.head.bias" ? value.flatten() : value;
}

/// A family with BART's keys and names.
template <class Model>
Family bart_like(const char* model_type, const char* class_prefix, const Model& model, const json& defaults,
                 const ObjectiveConfig& objective, const std::vector<Class>& of_tasks) {
  using enum Architecture;
  return {.model_type = model_type,
          .class_prefix = class_prefix,
          .table = {model, with_defaults(bart_keys(), defaults)},
          .classes = std::vector<Class>{{"ForConditionalGeneration", {objective}, encoder_decoder},
                                        causal_class("ForCausalLM", /*transform=*/false),
                                        {"Model", {}, encoder_decoder}} +
                     of_tasks,
          .prefix = "model.",
          .names = bart_names,
          .to_huggingface = with_axis,
          .from_huggingface = without_axis,
          .positions = {keys_of(transformer_of(model).positions).position_embeddings},
          .text_ids = {{"bos_token_id", 0}},
          .dropout_keys = {{Head::texts, "classifier_dropout"}}};
}

/// Those of BART and mBART; PEGASUS has none.
std::vector<Class> bart_task_classes() {
  return {task_class("ForSequenceClassification", Head::texts, Architecture::encoder_decoder),
          task_class("ForQuestionAnswering", Head::spans, Architecture::encoder_decoder)};
}

}  // namespace

Family bart() {
  auto family = bart_like("bart", "Bart", BartConfig{}, json::object(), default_objective<DenoisingConfig>(),
                          bart_task_classes());
  family.num_labels = 3;
  return family;
}
Family mbart() {
  return bart_like("mbart", "MBart", MBartConfig{}, {{"decoder_start_token_id", nullptr}},
                   default_objective<DenoisingConfig>(), bart_task_classes());
}
Family pegasus() {
  return bart_like(
      "pegasus", "Pegasus", PegasusConfig{},
      {{"pad_token_id", 0}, {"eos_token_id", 1}, {"decoder_start_token_id", 0}, {"forced_eos_token_id", 1}},
      default_objective<GapSentencesConfig>(), {});
}

}  // namespace cloze::huggingface
