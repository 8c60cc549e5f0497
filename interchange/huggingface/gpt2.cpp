#include "interchange/huggingface/family.h"
#include "models/families/gpt2.h"

namespace cloze::huggingface {

namespace {

Keys<TransformerConfig> gpt2_keys() {
  return {size("vocab_size", &TransformerConfig::vocab_size, 50257),
          size("n_embd", &TransformerConfig::hidden_size, 768),
          size("n_layer", &TransformerConfig::num_hidden_layers, 12, 0),
          size("n_head", &TransformerConfig::num_attention_heads, 12),
          size("n_positions", &TransformerConfig::max_position_embeddings, 1024),
          {.name = "n_inner",
           .may_be_null = true,
           .read =
               [](TransformerConfig& c, const ConfigValue& in) {
                 c.intermediate_size = in.value.is_null() ? 4 * c.hidden_size : in.at_least(1);
               },
           .write = [](const TransformerConfig& c) { return json(c.intermediate_size); }},
          field("activation_function", &TransformerConfig::hidden_act, Activation::gelu_new),
          field("resid_pdrop", &TransformerConfig::hidden_dropout_prob, 0.1),
          derived("embd_pdrop", 0.1, [](const TransformerConfig& c) { return json(c.hidden_dropout_prob); }),
          field("attn_pdrop", &TransformerConfig::attention_probs_dropout_prob, 0.1),
          field("layer_norm_epsilon", &TransformerConfig::layer_norm_eps, 1e-5),
          field("initializer_range", &TransformerConfig::initializer_range, 0.02),
          field("tie_word_embeddings", &TransformerConfig::tie_word_embeddings, true),
          id("eos_token_id", &TransformerConfig::eos_token_id, 50256),
          derived("bos_token_id", 50256,
                  [](const TransformerConfig& c) { return c.eos_token_id >= 0 ? json(c.eos_token_id) : json(); }),
          {.name = "pad_token_id",
           .may_be_null = true,
           .read = [](TransformerConfig& c,
                      const ConfigValue& in) { c.pad_token_id = in.value.is_null() ? 0 : in.at_least(0); },
           // 0 may stand for none, and transformers masks the padding id.
           .write = [](const TransformerConfig& c) { return c.pad_token_id > 0 ? json(c.pad_token_id) : json(); }},
          only("scale_attn_weights", true),
          only("scale_attn_by_inverse_layer_idx", false),
          only("add_cross_attention", false)};
}

ParameterNames gpt2_names(const ModelConfig&) {
  return {.outer = Names{{"lm.head.decoder", {"lm_head.weight"}},
                         {"backbone.embeddings.word", {"transformer.wte.weight"}},
                         {"backbone.embeddings.position", {"transformer.wpe.weight"}},
                         {"backbone.stack.final_norm.", {"transformer.ln_f."}}} +
                   task_heads({.output = "score."}),
          .stacks = {{"backbone.stack.",
                      numbered("transformer.h."),
                      {{"attention.qkv.", {"attn.c_attn."}},
                       {"attention.output.", {"attn.c_proj."}},
                       {"attention_norm.", {"ln_1."}},
                       {"output_norm.", {"ln_2."}},
                       {"intermediate.", {"mlp.c_fc."}},
                       {"output.", {"mlp.c_proj."}}}}}};
}

/// Linear layers are [in, out] there.
at::Tensor transposed(const TransformerConfig&, const std::string& name, const at::Tensor& value) {
  return name.starts_with("backbone.stack.") && value.dim() == 2 ? value.t() : value;
}

}  // namespace

Family gpt2() {
  return {.model_type = "gpt2",
          .class_prefix = "GPT2",
          .table = {Gpt2Config{}, gpt2_keys()},
          .classes = std::vector<Class>{causal_class("LMHeadModel", /*transform=*/false),
                                        {"Model"},
                                        task_class("ForSequenceClassification", Head::texts),
                                        task_class("ForTokenClassification", Head::tags),
                                        task_class("ForQuestionAnswering", Head::spans)},
          .prefix = "transformer.",
          .names = gpt2_names,
          .to_huggingface = transposed,
          .from_huggingface = transposed,
          .text_ids = {{"bos_token_id", 50256}, {"pad_token_id", nullptr}},
          .dropout_keys = {{Head::tags, "classifier_dropout"}}};
}

}  // namespace cloze::huggingface
