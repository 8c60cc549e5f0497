#include "interchange/huggingface/keys.h"

#include "core/json.h"

namespace cloze::huggingface {

std::string named_class(const json& config) {
  const auto classes = config.find("architectures");
  const bool named = classes != config.end() && classes->is_array() && !classes->empty() && (*classes)[0].is_string();
  return named ? (*classes)[0].get<std::string>() : "";
}

Key<TransformerConfig> only(const char* name, json value) {
  return {.name = name, .absent = value, .read = [value](TransformerConfig&, const ConfigValue& in) {
            require<ConfigError>(in.value == value, in.path, ": ", in.key, " is ", json_text(in.value), "; only ",
                                 json_text(value), " can be imported");
          }};
}

Key<TransformerConfig> derived(const char* name, json absent, std::function<json(const TransformerConfig&)> write) {
  return {.name = name, .absent = std::move(absent), .may_be_null = true, .write = std::move(write)};
}

Key<TransformerConfig> dropout(const char* name, double absent) {
  return {.name = name,
          .absent = absent,
          .read =
              [](TransformerConfig& c, const ConfigValue& in) {
                c.hidden_dropout_prob = c.attention_probs_dropout_prob = c.activation_dropout = in.as<double>();
              },
          .write = [](const TransformerConfig& c) { return json(c.hidden_dropout_prob); }};
}

Key<TransformerConfig> padding(int64_t absent) {
  return {.name = "pad_token_id",
          .absent = absent,
          .may_be_null = true,
          .read =
              [absent](TransformerConfig& c, const ConfigValue& in) {
                c.freeze_pad_embedding = !in.value.is_null();
                c.pad_token_id = in.value.is_null() ? absent : in.at_least(0);
              },
          .write = [](const TransformerConfig& c) { return json(c.pad_token_id); }};
}

Key<TransformerConfig> position_type() {
  return {.name = "position_embedding_type",
          .absent = "absolute",
          .read =
              [](TransformerConfig& c, const ConfigValue& in) {
                const auto type = in.as<std::string>();
                require<ConfigError>(type == "absolute" || type == "relative_key" || type == "relative_key_query",
                                     in.path, ": position_embedding_type is '", type,
                                     "'; 'absolute', 'relative_key' and 'relative_key_query' can be imported");
                if (type != "absolute") c.positions = RelativeKeys{.with_keys = type == "relative_key_query"};
              },
          .write =
              [](const TransformerConfig& c) {
                const auto* keys = std::get_if<RelativeKeys>(&c.positions.relative);
                return keys ? json(keys->with_keys ? "relative_key_query" : "relative_key") : omitted;
              }};
}

Key<TransformerConfig> embedding_size() {
  return {.name = "embedding_size",
          .absent = 128,
          .read = [](TransformerConfig& c, const ConfigValue& in) { c.embedding_size = in.at_least(1); },
          .write = [](const TransformerConfig& c) { return json(c.embedding_width()); }};
}

Keys<TransformerConfig> encoder_keys() {
  return {size("vocab_size", &TransformerConfig::vocab_size, 30522),
          size("hidden_size", &TransformerConfig::hidden_size, 768),
          size("num_hidden_layers", &TransformerConfig::num_hidden_layers, 12, 0),
          size("num_attention_heads", &TransformerConfig::num_attention_heads, 12),
          size("intermediate_size", &TransformerConfig::intermediate_size, 3072),
          field("hidden_act", &TransformerConfig::hidden_act, Activation::gelu),
          field("hidden_dropout_prob", &TransformerConfig::hidden_dropout_prob, 0.1),
          field("attention_probs_dropout_prob", &TransformerConfig::attention_probs_dropout_prob, 0.1),
          size("max_position_embeddings", &TransformerConfig::max_position_embeddings, 512),
          size("type_vocab_size", &TransformerConfig::type_vocab_size, 2),
          field("initializer_range", &TransformerConfig::initializer_range, 0.02),
          field("layer_norm_eps", &TransformerConfig::layer_norm_eps, 1e-12),
          padding(0),
          field("tie_word_embeddings", &TransformerConfig::tie_word_embeddings, true)};
}

namespace {

Key<TransformerConfig> is_decoder() {
  return {.name = "is_decoder",
          .absent = false,
          .read =
              [](TransformerConfig& c, const ConfigValue& in) {
                c.architecture = in.as<bool>() ? Architecture::decoder : Architecture::encoder;
              },
          .write = [](const TransformerConfig& c) { return json(c.is_decoder()); }};
}

}  // namespace

Keys<TransformerConfig> encoder_or_decoder_keys(json eos_token_id) {
  Key<TransformerConfig> end = id("eos_token_id", &TransformerConfig::eos_token_id, std::move(eos_token_id));
  end.write = [](const TransformerConfig& c) {
    if (!c.is_decoder()) return omitted;
    return c.eos_token_id >= 0 ? json(c.eos_token_id) : json();
  };
  return {is_decoder(), only("add_cross_attention", false), end};
}

}  // namespace cloze::huggingface
