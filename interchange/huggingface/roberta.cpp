#include "interchange/huggingface/family.h"
#include "models/families/roberta.h"

namespace cloze::huggingface {

namespace {

ParameterNames roberta_names(const ModelConfig&) {
  return names_of(
      {.prefix = "roberta.",
       .pooler = "pooler.dense.",
       .heads = prediction_head("lm_head.dense.", "lm_head.layer_norm.", "lm_head.decoder.weight", "lm_head.bias") +
                task_heads({.dense = "classifier.dense.", .output = "classifier.out_proj."})});
}

/// A type with RoBERTa's code.
Family roberta_like(const char* model_type, const char* class_prefix, int64_t vocab_size) {
  using enum PositionEmbeddings;
  return {.model_type = model_type,
          .class_prefix = class_prefix,
          .table = {RobertaConfig{}, with_defaults(encoder_keys(), {{"pad_token_id", 1}, {"vocab_size", vocab_size}}) +
                                         encoder_or_decoder_keys(2) + Keys<TransformerConfig>{position_type()}},
          .classes = std::vector<Class>{masked_class(), causal_class("ForCausalLM"), {"Model"}} + task_classes(),
          .prefix = "roberta.",
          .names = roberta_names,
          .bias_alias = "lm_head.decoder.bias",
          .positions = {learned, relative_key, relative_key_query},
          .text_ids = {{"bos_token_id", 0}},
          .dropout_keys = {{Head::texts, "classifier_dropout"}, {Head::tags, "classifier_dropout"}}};
}

}  // namespace

Family roberta() { return roberta_like("roberta", "Roberta", 50265); }
Family xlm_roberta() { return roberta_like("xlm-roberta", "XLMRoberta", 30522); }
Family camembert() { return roberta_like("camembert", "Camembert", 30522); }

}  // namespace cloze::huggingface
