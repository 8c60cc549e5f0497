#include "interchange/huggingface/family.h"
#include "models/families/electra.h"
#include "objectives/rtd/rtd.h"

namespace cloze::huggingface {

namespace {

Keys<TransformerConfig> electra_keys() {
  return with_defaults(encoder_keys(),
                       {{"hidden_size", 256}, {"num_attention_heads", 4}, {"intermediate_size", 1024}}) +
         encoder_or_decoder_keys(nullptr) + Keys<TransformerConfig>{embedding_size(), position_type()};
}

ParameterNames electra_names(const ModelConfig&) {
  return names_of({.prefix = "electra.",
                   .projection = "embeddings_project.",
                   .heads = prediction_head("generator_predictions.dense.", "generator_predictions.LayerNorm.",
                                            "generator_lm_head.weight", "generator_lm_head.bias") +
                            Names{{"rtd.dense.", {"discriminator_predictions.dense."}},
                                  {"rtd.prediction.", {"discriminator_predictions.dense_prediction."}}} +
                            task_heads({.dense = "classifier.dense.",
                                        .output = "classifier.out_proj.",
                                        .choice_dense = "sequence_summary.summary."})});
}

/// Replaced token detection of a discriminator without its generator.
RtdConfig discriminator() {
  RtdConfig rtd;
  rtd.replace_by = ReplaceBy::uniform;
  return rtd;
}

}  // namespace

Family electra() {
  using enum PositionEmbeddings;
  return {.model_type = "electra",
          .class_prefix = "Electra",
          .table = {ElectraConfig{}, electra_keys()},
          .classes =
              std::vector<Class>{
                  {"ForPreTraining", {discriminator()}}, masked_class(), causal_class("ForCausalLM"), {"Model"}} +
              task_classes(),
          .prefix = "electra.",
          .names = electra_names,
          .positions = {learned, relative_key, relative_key_query},
          .dropout_keys = {{Head::texts, "classifier_dropout"},
                           {Head::tags, "classifier_dropout"},
                           {Head::choice, "summary_last_dropout"}}};
}

}  // namespace cloze::huggingface
