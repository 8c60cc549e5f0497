#include "interchange/huggingface/family.h"
#include "models/families/xlnet.h"

namespace cloze::huggingface {

namespace {

Keys<XlnetConfig> xlnet_keys() {
  return {
      size("vocab_size", &TransformerConfig::vocab_size, 32000),
      {.name = "n_token",  // files of old versions
       .may_be_null = true,
       .read =
           [](TransformerConfig& c, const ConfigValue& in) {
             if (!in.file.contains("vocab_size") && !in.value.is_null()) c.vocab_size = in.at_least(1);
           }},
      size("d_model", &TransformerConfig::hidden_size, 1024),
      size("n_layer", &TransformerConfig::num_hidden_layers, 24, 0),
      size("n_head", &TransformerConfig::num_attention_heads, 16),
      {.name = "d_head",
       .may_be_null = true,
       .read =
           [](TransformerConfig& c, const ConfigValue& in) {
             const int64_t own = c.head_width(), head = in.value.is_null() ? own : in.as<int64_t>();
             require<ConfigError>(head == own, in.path, ": d_head ", head, " is not d_model / n_head, ", own,
                                  "; only that can be imported");
           },
       .write = [](const TransformerConfig& c) { return json(c.head_width()); }},
      size("d_inner", &TransformerConfig::intermediate_size, 4096),
      field("ff_activation", &TransformerConfig::hidden_act, Activation::gelu),
      dropout("dropout", 0.1),
      field("initializer_range", &TransformerConfig::initializer_range, 0.02),
      field("layer_norm_eps", &TransformerConfig::layer_norm_eps, 1e-12),
      size("pad_token_id", &TransformerConfig::pad_token_id, 5, 0),
      field("tie_word_embeddings", &TransformerConfig::tie_word_embeddings, true),
      {.name = "attn_type",
       .absent = "bi",
       .read =
           [](TwoStreamConfig& c, const ConfigValue& in) {
             const auto type = in.as<std::string>();
             require<ConfigError>(type == "bi" || type == "uni", in.path, ": attn_type is '", type,
                                  "'; 'bi' and 'uni' can be imported");
             c.attn_type = choice_of<AttentionDirection>(type);
           },
       .write = [](const TwoStreamConfig& c) { return json(name_of(c.attn_type)); }},
      field("clamp_len", &TwoStreamConfig::clamp_len, -1),
      count_or_null("mem_len", &TwoStreamConfig::mem_len, 512),
      count_or_null("reuse_len", &TwoStreamConfig::reuse_len, nullptr),
      field("bi_data", &TwoStreamConfig::bi_data, false),
      field("same_length", &TwoStreamConfig::same_length, false),
      derived("untie_r", true, [](const TransformerConfig&) { return json(true); }),
  };
}

/// Attention weights have no `.weight` suffix there; r_w_bias and similar biases have the same names.
ParameterNames xlnet_names(const ModelConfig&) {
  return {.outer = Names{{"lm.head.decoder", {"lm_loss.weight"}},
                         {"lm.head.bias", {"lm_loss.bias"}},
                         {"backbone.embeddings.word", {"transformer.word_embedding.weight"}},
                         {"backbone.mask_emb", {"transformer.mask_emb"}}} +
                   task_heads({.dense = "sequence_summary.summary.",
                               .output = "logits_proj.",
                               .choice_dense = "sequence_summary.summary.",
                               .choice_output = "logits_proj."}),
          .stacks = {{"backbone.stack.",
                      numbered("transformer.layer."),
                      {{"attention.query.weight", {"rel_attn.q"}},
                       {"attention.key_value.weight", {"rel_attn.k", "rel_attn.v"}},
                       {"attention.position.weight", {"rel_attn.r"}},
                       {"attention.output.weight", {"rel_attn.o"}},
                       {"attention.", {"rel_attn."}},
                       {"attention_norm.", {"rel_attn.layer_norm."}},
                       {"output_norm.", {"ff.layer_norm."}},
                       {"intermediate.", {"ff.layer_1."}},
                       {"output.", {"ff.layer_2."}}}}}};
}

bool is_attention_weight(std::string_view name) {
  return name.find(".attention.") != std::string_view::npos && name.find(".weight") != std::string_view::npos;
}
bool is_output_weight(std::string_view name) { return name.find(".attention.output.") != std::string_view::npos; }

/// Attention weights are [D, H, C] there; parts of one parameter are concatenated.
at::Tensor split_by_heads(const TransformerConfig& c, const std::string& name, const at::Tensor& value) {
  if (!is_attention_weight(name)) return value;
  const int64_t heads = c.num_attention_heads, width = c.head_width();
  if (is_output_weight(name)) return value.reshape({c.hidden_size, heads, width});
  return value.reshape({-1, heads * width, c.hidden_size})
      .transpose(1, 2)
      .reshape({-1, heads, width});  // n parts concatenated: [n D, H, C]
}
at::Tensor joined_heads(const TransformerConfig&, const std::string& name, const at::Tensor& value) {
  if (!is_attention_weight(name) || value.dim() != 3) return value;
  return is_output_weight(name) ? value.flatten(1) : value.flatten(1).t();
}

}  // namespace

Family xlnet() {
  return {.model_type = "xlnet",
          .class_prefix = "XLNet",
          .table = {XlnetConfig{}, xlnet_keys()},
          .classes = {{"LMHeadModel", {default_objective<PlmConfig>()}},
                      {"Model"},
                      task_class("ForSequenceClassification", Head::texts),
                      task_class("ForTokenClassification", Head::tags),
                      task_class("ForQuestionAnsweringSimple", Head::spans),
                      task_class("ForMultipleChoice", Head::choice)},
          .prefix = "transformer.",
          .names = xlnet_names,
          .to_huggingface = split_by_heads,
          .from_huggingface = joined_heads,
          .positions = {PositionEmbeddings::none},
          .text_ids = {{"bos_token_id", 1}, {"eos_token_id", 2}},
          .dropout_keys = {{Head::texts, "summary_last_dropout"}, {Head::choice, "summary_last_dropout"}}};
}

}  // namespace cloze::huggingface
