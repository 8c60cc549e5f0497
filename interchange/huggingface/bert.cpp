#include "interchange/huggingface/family.h"
#include "models/families/bert.h"

namespace cloze::huggingface {

namespace {

ParameterNames bert_names(const ModelConfig&) {
  return names_of({.prefix = "bert.",
                   .pooler = "pooler.dense.",
                   .heads = prediction_head("cls.predictions.transform.dense.", "cls.predictions.transform.LayerNorm.",
                                            "cls.predictions.decoder.weight", "cls.predictions.bias") +
                            Names{{"nsp.head.", {"cls.seq_relationship."}}, {"sop.head.", {"cls.seq_relationship."}}} +
                            task_heads({})});
}

}  // namespace

Family bert() {
  using enum PositionEmbeddings;
  return {.model_type = "bert",
          .class_prefix = "Bert",
          .table = {BertConfig{},
                    encoder_keys() + encoder_or_decoder_keys(nullptr) + Keys<TransformerConfig>{position_type()}},
          .classes = std::vector<Class>{pretraining_class(default_objective<NspConfig>()),
                                        masked_class(),
                                        causal_class("LMHeadModel"),
                                        causal_class("ForCausalLM"),
                                        {"Model"}} +
                     task_classes(),
          .prefix = "bert.",
          .names = bert_names,
          .bias_alias = "cls.predictions.decoder.bias",
          .positions = {learned, relative_key, relative_key_query},
          .dropout_keys = {{Head::texts, "classifier_dropout"},
                           {Head::tags, "classifier_dropout"},
                           {Head::choice, "classifier_dropout"}}};
}

}  // namespace cloze::huggingface
