#include "interchange/huggingface/family.h"

#include "core/log.h"
#include "models/families/bigbird.h"

namespace cloze::huggingface {

namespace {

/// A key of block-sparse attention, omitted for full attention.
Key<TransformerConfig> block_sparse_key(const char* name, int64_t BigBirdAttention::* member, int64_t absent) {
  return {.name = name,
          .absent = absent,
          .read =
              [member](TransformerConfig& c, const ConfigValue& in) {
                if (auto* blocks = std::get_if<BigBirdAttention>(&*c.attention)) blocks->*member = in.as<int64_t>();
              },
          .write =
              [member](const TransformerConfig& c) {
                const auto* blocks = std::get_if<BigBirdAttention>(&*c.attention);
                return blocks ? json(blocks->*member) : omitted;
              }};
}
/// Block-sparse or full attention.
Key<TransformerConfig> attention_type() {
  return {
      .name = "attention_type",
      .absent = "block_sparse",
      .read =
          [](TransformerConfig& c, const ConfigValue& in) {
            const auto type = in.as<std::string>();
            require<ConfigError>(type == "block_sparse" || type == "original_full", in.path, ": attention_type is '",
                                 type, "'; 'block_sparse' and 'original_full' can be imported");
            if (type == "original_full") {
              c.attention = FullAttention{};
              return;
            }
            require<ConfigError>(!c.is_decoder(), in.path,
                                 ": is_decoder is true, but block-sparse attention is bidirectional; set "
                                 "attention_type to 'original_full'");
            c.attention = BigBirdAttention{};
            log_info("import",
                     "attention_type is block_sparse: outputs differ from those of transformers, which has no random "
                     "blocks in evaluation");
          },
      .write =
          [](const TransformerConfig& c) {
            return json(std::holds_alternative<BigBirdAttention>(*c.attention) ? "block_sparse" : "original_full");
          }};
}

Keys<TransformerConfig> bigbird_keys() {
  return with_defaults(encoder_keys(),
                       {{"vocab_size", 50358}, {"hidden_act", "gelu_new"}, {"max_position_embeddings", 4096}}) +
         encoder_or_decoder_keys(2) +
         Keys<TransformerConfig>{attention_type(),
                                 block_sparse_key("block_size", &BigBirdAttention::block_size, 64),
                                 block_sparse_key("num_random_blocks", &BigBirdAttention::num_random_blocks, 3),
                                 only("use_bias", true),
                                 only("rescale_embeddings", false),
                                 only("position_embedding_type", "absolute")};
}

ParameterNames bigbird_names(const ModelConfig&) {
  return names_of({.prefix = "bert.",
                   .pooler = "pooler.",
                   .heads = prediction_head("cls.predictions.transform.dense.", "cls.predictions.transform.LayerNorm.",
                                            "cls.predictions.decoder.weight", "cls.predictions.bias") +
                            Names{{"nsp.head.", {"cls.seq_relationship."}},
                                  {"spans.block.intermediate.", {"qa_classifier.intermediate.dense."}},
                                  {"spans.block.projection.", {"qa_classifier.output.dense."}},
                                  {"spans.block.norm.", {"qa_classifier.output.LayerNorm."}}} +
                            task_heads({.dense = "classifier.dense.",
                                        .output = "classifier.out_proj.",
                                        .spans = "qa_classifier.qa_outputs."})});
}

}  // namespace

Family big_bird() {
  return {.model_type = "big_bird",
          .class_prefix = "BigBird",
          .table = {BigBirdConfig{}, bigbird_keys()},
          .classes = std::vector<Class>{pretraining_class(default_objective<NspConfig>()),
                                        masked_class(),
                                        causal_class("ForCausalLM"),
                                        {"Model"}} +
                     task_classes(),
          .prefix = "bert.",
          .names = bigbird_names,
          .bias_alias = "cls.predictions.decoder.bias",
          .full_attention = true,
          .text_ids = {{"bos_token_id", 1}, {"sep_token_id", 66}},
          .dropout_keys = {{Head::texts, "classifier_dropout"}, {Head::tags, "classifier_dropout"}}};
}

}  // namespace cloze::huggingface
