#include "core/json.h"
#include "interchange/huggingface/family.h"
#include "models/families/modernbert.h"

#include <algorithm>

namespace cloze::huggingface {

namespace {

AlternatingAttention& alternating(TransformerConfig& c) { return std::get<AlternatingAttention>(*c.attention); }
const AlternatingAttention& alternating(const TransformerConfig& c) {
  return std::get<AlternatingAttention>(*c.attention);
}

/// A key of ModernBERT's attention.
template <class T>
Key<TransformerConfig> of_alternating(const char* name, T AlternatingAttention::* member,
                                      std::type_identity_t<T> absent) {
  return {.name = name,
          .absent = absent,
          .read = [member](TransformerConfig& c, const ConfigValue& in) { alternating(c).*member = in.as<T>(); },
          .write = [member](const TransformerConfig& c) { return json(alternating(c).*member); }};
}

/// Which layers have full attention: a key of transformers 4, where they are every n-th one.
Key<TransformerConfig> every_nth_layer() {
  return {.name = "global_attn_every_n_layers",
          .absent = 3,
          .read =
              [](TransformerConfig& c, const ConfigValue& in) {
                const auto n = in.as<int64_t>();
                require<ConfigError>(n > 0, in.path, ": global_attn_every_n_layers is ", n, "; write a number above 0");
                alternating(c).global_attn_every_n_layers = n;
              },
          .write =
              [](const TransformerConfig& c) {
                const auto& kind = alternating(c);
                return kind.global_layers.empty() ? json(kind.global_attn_every_n_layers) : omitted;
              }};
}

/// The same as transformers 5 has it, layer by layer; it counts where both are there.
Key<TransformerConfig> layer_types() {
  return {.name = "layer_types",
          .may_be_null = true,
          .read =
              [](TransformerConfig& c, const ConfigValue& in) {
                if (in.value.is_null()) return;
                const auto types = in.as<std::vector<std::string>>();
                require<ConfigError>(static_cast<int64_t>(types.size()) == c.num_hidden_layers, in.path,
                                     ": layer_types names ", types.size(), " layers, num_hidden_layers is ",
                                     c.num_hidden_layers, "; the file is damaged");
                std::vector<int64_t> full;
                for (size_t i = 0; i < types.size(); ++i) {
                  require<ConfigError>(types[i] == "full_attention" || types[i] == "sliding_attention", in.path,
                                       ": layer_types names '", types[i],
                                       "'; 'full_attention' and 'sliding_attention' can be imported");
                  if (types[i] == "full_attention") full.push_back(static_cast<int64_t>(i));
                }
                require<ConfigError>(
                    !full.empty() || types.empty(), in.path,
                    ": layer_types has no 'full_attention'; a stack of windows alone cannot be imported");
                auto& kind = alternating(c);
                kind.global_layers.clear();
                const int64_t layers = c.num_hidden_layers;
                kind.global_attn_every_n_layers = full.size() > 1 ? full[1] - full[0] : std::max<int64_t>(layers, 1);
                for (int64_t i = 0; i < layers; ++i)
                  if (kind.is_global(i) != (types[static_cast<size_t>(i)] == "full_attention")) {
                    kind.global_layers = full;
                    return;
                  }
              },
          .write =
              [](const TransformerConfig& c) {
                auto types = json::array();
                for (int64_t i = 0; i < c.num_hidden_layers; ++i)
                  types.push_back(alternating(c).is_global(i) ? "full_attention" : "sliding_attention");
                return types;
              }};
}

/// The base of local layers: a key of transformers 4, where null means that of the full layers. Source: its
/// ModernBertAttention.
Key<TransformerConfig> local_rope_theta() {
  auto key = of_alternating("local_rope_theta", &AlternatingAttention::local_rope_theta, 10000);
  key.may_be_null = true;
  key.read = [](TransformerConfig& c, const ConfigValue& in) {
    auto& kind = alternating(c);
    kind.local_rope_theta = in.value.is_null() ? kind.global_rope_theta : in.as<double>();
  };
  return key;
}

/// Throws ConfigError unless rope_parameters is an object of objects, one for each type of layer.
void check_rope_parameters(const ConfigValue& in) {
  require<ConfigError>(in.value.is_object(), in.path, ": rope_parameters is ", json_text(in.value),
                       ", must be an object with 'full_attention' and 'sliding_attention', or null");
  for (const auto& [type, one] : in.value.items()) {
    require<ConfigError>(type == "full_attention" || type == "sliding_attention", in.path, ": rope_parameters names '",
                         type, "'; 'full_attention' and 'sliding_attention' can be imported");
    require<ConfigError>(one.is_object() || one.is_null(), in.path, ": rope_parameters of ", type, " is ",
                         json_text(one), ", must be an object with 'rope_theta', or null");
  }
}

/// Rotary positions as transformers 5 has them; what it says counts before global_rope_theta and local_rope_theta.
Key<TransformerConfig> rope_parameters() {
  return {.name = "rope_parameters",
          .may_be_null = true,
          .read =
              [](TransformerConfig& c, const ConfigValue& in) {
                if (in.value.is_null()) return;
                check_rope_parameters(in);
                for (const auto& [type, theta] : {std::pair{"full_attention", &AlternatingAttention::global_rope_theta},
                                                  {"sliding_attention", &AlternatingAttention::local_rope_theta}}) {
                  const auto of_type = in.value.find(type);
                  if (of_type == in.value.end() || of_type->is_null()) continue;
                  std::string kind = "default";
                  double rotated = 1;
                  take(*of_type, "rope_type", kind, in.path);
                  take(*of_type, "partial_rotary_factor", rotated, in.path);
                  require<ConfigError>(kind == "default" && rotated == 1, in.path, ": rope_parameters of ", type,
                                       " is ", json_text(*of_type),
                                       "; only rope_type 'default' of whole heads can be imported");
                  take(*of_type, "rope_theta", alternating(c).*theta, in.path);
                }
              },
          .write =
              [](const TransformerConfig& c) {
                const auto of = [](double theta) { return json{{"rope_theta", theta}, {"rope_type", "default"}}; };
                return json{{"full_attention", of(alternating(c).global_rope_theta)},
                            {"sliding_attention", of(alternating(c).local_rope_theta)}};
              }};
}

Keys<TransformerConfig> modernbert_keys() {
  return {size("vocab_size", &TransformerConfig::vocab_size, 50368),
          size("hidden_size", &TransformerConfig::hidden_size, 768),
          size("num_hidden_layers", &TransformerConfig::num_hidden_layers, 22, 0),
          size("num_attention_heads", &TransformerConfig::num_attention_heads, 12),
          size("intermediate_size", &TransformerConfig::intermediate_size, 1152),
          field("hidden_activation", &TransformerConfig::hidden_act, Activation::gelu),
          size("max_position_embeddings", &TransformerConfig::max_position_embeddings, 8192),
          field("initializer_range", &TransformerConfig::initializer_range, 0.02),
          derived("initializer_cutoff_factor", 2.0, [](const TransformerConfig&) { return json(2.0); }),
          field("norm_eps", &TransformerConfig::layer_norm_eps, 1e-5),
          field("norm_bias", &TransformerConfig::norm_bias, false),
          field("attention_bias", &TransformerConfig::attention_bias, false),
          field("mlp_bias", &TransformerConfig::mlp_bias, false),
          field("classifier_bias", &TransformerConfig::classifier_bias, false),
          field("decoder_bias", &TransformerConfig::decoder_bias, true),
          only("classifier_activation", "gelu"),
          field("embedding_dropout", &TransformerConfig::hidden_dropout_prob, 0),
          field("attention_dropout", &TransformerConfig::attention_probs_dropout_prob, 0),
          field("mlp_dropout", &TransformerConfig::activation_dropout, 0),
          field("tie_word_embeddings", &TransformerConfig::tie_word_embeddings, true),
          padding(50283),
          of_alternating("local_attention", &AlternatingAttention::local_attention, 128),
          of_alternating("global_rope_theta", &AlternatingAttention::global_rope_theta, 160000),
          local_rope_theta(),
          every_nth_layer(),
          layer_types(),
          rope_parameters(),
          only("rope_scaling", nullptr)};
}

/// "Wi" is two parameters here: intermediate and gate.
ParameterNames modernbert_names(const ModelConfig&) {
  Names heads =
      task_heads({.dense = "head.dense.", .norm = "head.norm.", .spans = "classifier.", .choice_dense = "head.dense."});
  for (const std::string head : {"tagging.", "spans."})
    heads = heads + Names{{head + "dense.", {"head.dense."}}, {head + "norm.", {"head.norm."}}};
  return {.outer = Names{{"backbone.embeddings.word", {"model.embeddings.tok_embeddings.weight"}},
                         {"backbone.embeddings.norm.", {"model.embeddings.norm."}},
                         {"backbone.stack.final_norm.", {"model.final_norm."}},
                         {"mlm.head.transform.", {"head.dense."}},
                         {"mlm.head.norm.", {"head.norm."}},
                         {"mlm.head.decoder", {"decoder.weight"}},
                         {"mlm.head.bias", {"decoder.bias"}}} +
                   heads,
          .stacks = {{"backbone.stack.",
                      numbered("model.layers."),
                      {{"attention.qkv.", {"attn.Wqkv."}},
                       {"attention.output.", {"attn.Wo."}},
                       {"attention_norm.", {"attn_norm."}},
                       {"output_norm.", {"mlp_norm."}},
                       {"intermediate.", {"mlp.Wi[0]."}},
                       {"gate.", {"mlp.Wi[1]."}},
                       {"output.", {"mlp.Wo."}}}}}};
}

}  // namespace

Family modernbert() {
  return {
      .model_type = "modernbert",
      .class_prefix = "ModernBert",
      .table = {ModernBertConfig{}, modernbert_keys()},
      .classes = std::vector<Class>{masked_class(), {"Model"}} + task_classes(),
      .prefix = "model.",
      .names = modernbert_names,
      .halved = ".Wi",
      .positions = {PositionEmbeddings::rotary},
      .feed_forward = {FeedForward::gated},
      .text_ids = {{"bos_token_id", 50281}, {"eos_token_id", 50282}, {"cls_token_id", 50281}, {"sep_token_id", 50282}},
      .dropout_keys = {{Head::texts, "classifier_dropout"},
                       {Head::tags, "classifier_dropout"},
                       {Head::spans, "classifier_dropout"},
                       {Head::choice, "classifier_dropout"}}};
}

}  // namespace cloze::huggingface
