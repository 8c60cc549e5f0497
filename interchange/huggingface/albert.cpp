#include "interchange/huggingface/family.h"
#include "models/families/albert.h"

namespace cloze::huggingface {

namespace {

Keys<AlbertConfig> albert_keys() {
  return with_defaults(encoder_keys(), {{"vocab_size", 30000},
                                        {"hidden_size", 4096},
                                        {"num_attention_heads", 64},
                                        {"intermediate_size", 16384},
                                        {"hidden_act", "gelu_new"},
                                        {"hidden_dropout_prob", 0},
                                        {"attention_probs_dropout_prob", 0}}) +
         Keys<AlbertConfig>{embedding_size(), size("num_hidden_groups", &LayerSharing::num_hidden_groups, 1),
                            size("inner_group_num", &LayerSharing::inner_group_num, 1), position_type()};
}

ParameterNames albert_names(const ModelConfig& model) {
  auto names = names_of({.prefix = "albert.",
                         .block = {{"attention.qkv.", {"attention.query.", "attention.key.", "attention.value."}},
                                   {"attention.distance", {"attention.distance_embedding.weight"}},
                                   {"attention.output.", {"attention.dense."}},
                                   {"attention_norm.", {"attention.LayerNorm."}},
                                   {"output_norm.", {"full_layer_layer_norm."}},
                                   {"intermediate.", {"ffn."}},
                                   {"output.", {"ffn_output."}}},
                         .projection = "encoder.embedding_hidden_mapping_in.",
                         .pooler = "pooler.",
                         .heads = prediction_head("predictions.dense.", "predictions.LayerNorm.",
                                                  "predictions.decoder.weight", "predictions.bias") +
                                  Names{{"sop.head.", {"sop_classifier.classifier."}}} + task_heads({})});
  names.stacks[0].of_block = [blocks = part_of<LayerSharing>(model).inner_group_num](int64_t block) {
    return "albert.encoder.albert_layer_groups." + std::to_string(block / blocks) + ".albert_layers." +
           std::to_string(block % blocks) + ".";
  };
  return names;
}

}  // namespace

Family albert() {
  using enum PositionEmbeddings;
  return {.model_type = "albert",
          .class_prefix = "Albert",
          .table = {AlbertConfig{}, albert_keys()},
          .classes = std::vector<Class>{pretraining_class(default_objective<SopConfig>()), masked_class(), {"Model"}} +
                     task_classes(),
          .prefix = "albert.",
          .names = albert_names,
          .bias_alias = "predictions.decoder.bias",
          .positions = {learned, relative_key, relative_key_query},
          .text_ids = {{"bos_token_id", 2}, {"eos_token_id", 3}},
          .dropout_keys = {{Head::texts, "classifier_dropout_prob"},
                           {Head::tags, "classifier_dropout_prob"},
                           {Head::choice, "classifier_dropout_prob"}}};
}

}  // namespace cloze::huggingface
