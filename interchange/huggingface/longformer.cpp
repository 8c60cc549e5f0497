#include "core/json.h"
#include "interchange/huggingface/family.h"
#include "models/families/longformer.h"

#include <algorithm>

namespace cloze::huggingface {

namespace {

/// One window for all layers, or a list with one for each.
Key<TransformerConfig> attention_window() {
  return {.name = "attention_window",
          .absent = 512,
          .read =
              [](TransformerConfig& c, const ConfigValue& in) {
                std::vector<int64_t> list;
                for (const auto& one : in.value.is_array() ? in.value : json::array({in.value}))
                  list.push_back(ConfigValue{one, in.file, in.key, in.path}.as<int64_t>());
                const auto odd = std::find_if(list.begin(), list.end(), [](auto n) { return n < 2 || n % 2 != 0; });
                require<ConfigError>(odd == list.end(), in.path, ": attention_window is ", json_text(in.value),
                                     "; windows must be even numbers of at least 2");
                const auto count = static_cast<int64_t>(list.size());
                require<ConfigError>(count == 1 || count == c.num_hidden_layers, in.path, ": attention_window has ",
                                     count, " windows for ", c.num_hidden_layers, " layers");
                // transformers has no global tokens unless a mask marks them.
                c.attention = WindowAttention{.attention_window = list, .global_tokens = GlobalTokens::none};
              },
          .write =
              [](const TransformerConfig& c) {
                auto list = std::get<WindowAttention>(*c.attention).attention_window;
                if (list.size() == 1) list.assign(static_cast<size_t>(c.num_hidden_layers), list[0]);
                return json(list);
              }};
}

ParameterNames longformer_names(const ModelConfig&) {
  return names_of(
      {.prefix = "longformer.",
       .block = BertNames::bert_block() +
                Names{{"attention.query_global.", {"attention.self.query_global."}},
                      {"attention.key_value_global.", {"attention.self.key_global.", "attention.self.value_global."}}},
       .pooler = "pooler.dense.",
       .heads = prediction_head("lm_head.dense.", "lm_head.layer_norm.", "lm_head.decoder.weight", "lm_head.bias") +
                task_heads({.dense = "classifier.dense.", .output = "classifier.out_proj."})});
}

}  // namespace

Family longformer() {
  return {.model_type = "longformer",
          .class_prefix = "Longformer",
          .table = {LongformerConfig{},
                    with_defaults(encoder_keys(), {{"pad_token_id", 1}}) +
                        Keys<TransformerConfig>{attention_window(), only("position_embedding_type", "absolute")}},
          .classes = std::vector<Class>{masked_class(), {"Model"}} + task_classes(),
          .prefix = "longformer.",
          .names = longformer_names,
          .bias_alias = "lm_head.decoder.bias",
          .text_ids = {{"bos_token_id", 0}, {"eos_token_id", 2}, {"sep_token_id", 2}}};
}

}  // namespace cloze::huggingface
