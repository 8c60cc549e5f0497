#include "interchange/huggingface/family.h"
#include "models/families/distilbert.h"

namespace cloze::huggingface {

namespace {

Keys<TransformerConfig> distilbert_keys() {
  return {size("vocab_size", &TransformerConfig::vocab_size, 30522),
          size("dim", &TransformerConfig::hidden_size, 768),
          size("n_layers", &TransformerConfig::num_hidden_layers, 6, 0),
          size("n_heads", &TransformerConfig::num_attention_heads, 12),
          size("hidden_dim", &TransformerConfig::intermediate_size, 3072),
          field("activation", &TransformerConfig::hidden_act, Activation::gelu),
          field("dropout", &TransformerConfig::hidden_dropout_prob, 0.1),
          field("attention_dropout", &TransformerConfig::attention_probs_dropout_prob, 0.1),
          size("max_position_embeddings", &TransformerConfig::max_position_embeddings, 512),
          field("initializer_range", &TransformerConfig::initializer_range, 0.02),
          field("tie_word_embeddings", &TransformerConfig::tie_word_embeddings, true),
          padding(0),
          {.name = "sinusoidal_pos_embds",
           .absent = false,
           // transformers 5 trains this table too.
           .read =
               [](TransformerConfig& c, const ConfigValue& in) {
                 c.positions = in.as<bool>() ? PositionTable::sinusoidal_start : PositionTable::learned;
               },
           .write = [](const TransformerConfig& c) { return json(c.positions.table != PositionTable::learned); }}};
}

ParameterNames distilbert_names(const ModelConfig&) {
  return names_of({.prefix = "distilbert.",
                   .blocks = "transformer.layer.",
                   .block = {{"attention.qkv.", {"attention.q_lin.", "attention.k_lin.", "attention.v_lin."}},
                             {"attention.output.", {"attention.out_lin."}},
                             {"attention_norm.", {"sa_layer_norm."}},
                             {"output_norm.", {"output_layer_norm."}},
                             {"intermediate.", {"ffn.lin1."}},
                             {"output.", {"ffn.lin2."}}},
                   .heads = prediction_head("vocab_transform.", "vocab_layer_norm.", "vocab_projector.weight",
                                            "vocab_projector.bias") +
                            task_heads({.dense = "pre_classifier.", .choice_dense = "pre_classifier."})});
}

}  // namespace

Family distilbert() {
  using enum PositionEmbeddings;
  return {
      .model_type = "distilbert",
      .class_prefix = "DistilBert",
      .table = {DistilBertConfig{}, distilbert_keys()},
      .classes = std::vector<Class>{masked_class(), {"Model"}} + task_classes(),
      .prefix = "distilbert.",
      .names = distilbert_names,
      .positions = {learned, sinusoidal, sinusoidal_halves, sinusoidal_start},
      .dropout_keys = {
          {Head::texts, "seq_classif_dropout"}, {Head::choice, "seq_classif_dropout"}, {Head::spans, "qa_dropout"}}};
}

}  // namespace cloze::huggingface
