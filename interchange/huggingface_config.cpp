// The tables of config.json. Defaults are those of transformers 5.23, as in
// tests/interchange/huggingface_defaults.json.
#include "interchange/huggingface_config.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"

namespace cloze {

using nlohmann::json;

namespace {

/// A value to read.
struct Given {
  const json& value;  ///< of the file, else the default of the class; may be null
  const json& file;   ///< the whole object
  std::string key, path;

  template <class T>
  T as() const {
    T field{};
    require<ConfigError>(!value.is_null(), path, ": '", key, "' is null, which the class does not allow; give a value");
    take(json{{key, value}}, key.c_str(), field, path);
    return field;
  }
};

/// A key of config.json and its conversion from and to a model config.
struct Key {
  std::string name;
  json absent{};             ///< the default of the class for an absent key
  bool may_be_null = false;  ///< if false, null means that the key is absent
  std::function<void(BackboneConfig&, const Given&)> read = [](BackboneConfig&, const Given&) {};
  std::function<json(const BackboneConfig&)> write = [](const BackboneConfig&) { return omitted; };
  inline static const json omitted = json(json::value_t::discarded);  ///< from `write`: no such key
};
using Keys = std::vector<Key>;

/// The part of a model config that declares a field, for `field` and others.
template <class Owner>
Owner& part(BackboneConfig& c) {
  return static_cast<Owner&>(c);
}
template <class Owner>
const Owner& part(const BackboneConfig& c) {
  return static_cast<const Owner&>(c);
}
EncoderDecoderConfig& encoder_decoder(BackboneConfig& c) { return part<EncoderDecoderConfig>(c); }
const EncoderDecoderConfig& encoder_decoder(const BackboneConfig& c) { return part<EncoderDecoderConfig>(c); }
template <>
DecodingIds& part<DecodingIds>(BackboneConfig& c) {
  return encoder_decoder(c);
}
template <>
const DecodingIds& part<DecodingIds>(const BackboneConfig& c) {
  return encoder_decoder(c);
}

/// A key with the same meaning in Cloze.
template <class T, class Owner>
Key field(const char* name, T Owner::* member, std::type_identity_t<T> absent) {
  return {.name = name,
          .absent = absent,
          .read = [member](BackboneConfig& c, const Given& in) { part<Owner>(c).*member = in.as<T>(); },
          .write = [member](const BackboneConfig& c) { return json(part<Owner>(c).*member); }};
}

/// An id; null means none, -1 in Cloze. A list of one id is that id.
template <class Owner>
Key id(const char* name, int64_t Owner::* member, json absent) {
  return {.name = name,
          .absent = std::move(absent),
          .may_be_null = true,
          .read =
              [member](BackboneConfig& c, const Given& in) {
                require<ConfigError>(!in.value.is_array() || in.value.size() == 1, in.path, ": '", in.key, "' is ",
                                     in.value.dump(), ", but Cloze supports one id; give that one");
                const json one = in.value.is_array() ? in.value[0] : in.value;
                part<Owner>(c).*member = one.is_null() ? -1 : Given{one, in.file, in.key, in.path}.as<int64_t>();
              },
          .write =
              [member](const BackboneConfig& c) {
                const auto value = part<Owner>(c).*member;
                return value >= 0 ? json(value) : json();
              }};
}

/// A count; null means 0 in Cloze.
template <class Owner>
Key count_or_null(const char* name, int64_t Owner::* member, json absent) {
  return {.name = name,
          .absent = std::move(absent),
          .may_be_null = true,
          .read = [member](BackboneConfig& c,
                           const Given& in) { part<Owner>(c).*member = in.value.is_null() ? 0 : in.as<int64_t>(); },
          .write =
              [member](const BackboneConfig& c) {
                const auto value = part<Owner>(c).*member;
                return value > 0 ? json(value) : json();
              }};
}

/// A size of the decoder; 0 in Cloze means that of the encoder.
template <class Owner>
Key decoder_size(const char* name, int64_t EncoderDecoderConfig::* member, int64_t Owner::* encoder, json absent) {
  return {
      .name = name,
      .absent = std::move(absent),
      .may_be_null = true,
      .read = [=](BackboneConfig& c,
                  const Given& in) { encoder_decoder(c).*member = in.value.is_null() ? c.*encoder : in.as<int64_t>(); },
      .write =
          [=](const BackboneConfig& c) {
            return json(encoder_decoder(c).*member > 0 ? encoder_decoder(c).*member : c.*encoder);
          }};
}

/// A key of which Cloze supports a single value.
Key only(const char* name, json value) {
  return {.name = name, .absent = value, .read = [value](BackboneConfig&, const Given& in) {
            require<ConfigError>(in.value == value, in.path, ": ", in.key, " is ", in.value.dump(), "; only ",
                                 value.dump(), " can be imported");
          }};
}

/// A key that is written only, derived from other fields.
Key derived(const char* name, json absent, std::function<json(const BackboneConfig&)> write) {
  return {.name = name, .absent = std::move(absent), .may_be_null = true, .write = std::move(write)};
}

/// One dropout rate, for several fields of Cloze.
Key dropout(const char* name, double absent) {
  return {.name = name,
          .absent = absent,
          .read =
              [](BackboneConfig& c, const Given& in) {
                c.hidden_dropout_prob = c.attention_probs_dropout_prob = c.activation_dropout = in.as<double>();
              },
          .write = [](const BackboneConfig& c) { return json(c.hidden_dropout_prob); }};
}

/// The padding id, whose embedding gets no gradient; null: all embeddings get gradients.
Key padding(int64_t absent) {
  return {.name = "pad_token_id",
          .absent = absent,
          .may_be_null = true,
          .read =
              [absent](BackboneConfig& c, const Given& in) {
                c.freeze_pad_embedding = !in.value.is_null();
                c.pad_token_id = in.value.is_null() ? absent : in.as<int64_t>();
              },
          .write = [](const BackboneConfig& c) { return json(c.pad_token_id); }};
}

Keys operator+(Keys a, const Keys& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The same keys with other defaults.
Keys with_defaults(Keys keys, const json& absent) {
  for (auto& key : keys)
    if (absent.contains(key.name)) key.absent = absent[key.name];
  return keys;
}

const Keys encoder{field("vocab_size", &BackboneConfig::vocab_size, 30522),
                   field("hidden_size", &BackboneConfig::hidden_size, 768),
                   field("num_hidden_layers", &BackboneConfig::num_hidden_layers, 12),
                   field("num_attention_heads", &BackboneConfig::num_attention_heads, 12),
                   field("intermediate_size", &BackboneConfig::intermediate_size, 3072),
                   field("hidden_act", &BackboneConfig::hidden_act, "gelu"),
                   field("hidden_dropout_prob", &BackboneConfig::hidden_dropout_prob, 0.1),
                   field("attention_probs_dropout_prob", &BackboneConfig::attention_probs_dropout_prob, 0.1),
                   field("max_position_embeddings", &BackboneConfig::max_position_embeddings, 512),
                   field("type_vocab_size", &BackboneConfig::type_vocab_size, 2),
                   field("initializer_range", &BackboneConfig::initializer_range, 0.02),
                   field("layer_norm_eps", &BackboneConfig::layer_norm_eps, 1e-12),
                   padding(0),
                   field("tie_word_embeddings", &BackboneConfig::tie_word_embeddings, true)};

const Key is_decoder{
    .name = "is_decoder",
    .absent = false,
    .read = [](BackboneConfig& c,
               const Given& in) { c.architecture = in.as<bool>() ? Architecture::decoder : Architecture::encoder; },
    .write = [](const BackboneConfig& c) { return json(c.is_decoder()); }};

/// Keys of classes that may be encoder or decoder; only a decoder has an end token.
Keys causal(json eos_token_id) {
  auto end = id("eos_token_id", &BackboneConfig::eos_token_id, std::move(eos_token_id));
  end.write = [](const BackboneConfig& c) {
    if (!c.is_decoder()) return Key::omitted;
    return c.eos_token_id >= 0 ? json(c.eos_token_id) : json();
  };
  return {is_decoder, only("add_cross_attention", false), end};
}

/// A key of transformers 4, removed in 5.
const Key position_type{.name = "position_embedding_type",
                        .absent = "absolute",
                        .read =
                            [](BackboneConfig& c, const Given& in) {
                              const auto type = in.as<std::string>();
                              require<ConfigError>(
                                  type == "absolute" || type == "relative_key" || type == "relative_key_query", in.path,
                                  ": position_embedding_type is '", type,
                                  "'; 'absolute', 'relative_key' and 'relative_key_query' can be imported");
                              if (type != "absolute") c.position_embeddings = choice_of<PositionEmbeddings>(type);
                            },
                        .write =
                            [](const BackboneConfig& c) {
                              return c.has_relative_keys() ? json(name_of(c.position_embeddings)) : Key::omitted;
                            }};

const Key embedding_size{.name = "embedding_size",
                         .absent = 128,
                         .read = [](BackboneConfig& c, const Given& in) { c.embedding_size = in.as<int64_t>(); },
                         .write = [](const BackboneConfig& c) { return json(c.embedding_width()); }};

const Key attention_window{
    .name = "attention_window",
    .absent = 512,
    .read =
        [](BackboneConfig& c, const Given& in) {
          std::vector<int64_t> list;
          for (const auto& one : in.value.is_array() ? in.value : json::array({in.value}))
            list.push_back(Given{one, in.file, in.key, in.path}.as<int64_t>());
          const auto odd = std::find_if(list.begin(), list.end(), [](auto n) { return n < 2 || n % 2 != 0; });
          require<ConfigError>(odd == list.end(), in.path, ": attention_window is ", in.value.dump(),
                               "; windows must be even numbers of at least 2");
          const auto count = static_cast<int64_t>(list.size());
          require<ConfigError>(count == 1 || count == c.num_hidden_layers, in.path, ": attention_window has ", count,
                               " windows for ", c.num_hidden_layers, " layers");
          // transformers has no global tokens unless a mask marks them.
          c.attention = WindowAttention{.attention_window = list, .global_tokens = GlobalTokens::none};
        },
    .write =
        [](const BackboneConfig& c) {
          auto list = std::get<WindowAttention>(c.attention).attention_window;
          if (list.size() == 1) list.assign(static_cast<size_t>(c.num_hidden_layers), list[0]);
          return json(list);
        }};

/// A key of block-sparse attention, omitted for full attention.
Key block_sparse_key(const char* name, int64_t BigBirdAttention::* member, int64_t absent) {
  return {.name = name,
          .absent = absent,
          .read =
              [member](BackboneConfig& c, const Given& in) {
                if (auto* blocks = std::get_if<BigBirdAttention>(&c.attention)) blocks->*member = in.as<int64_t>();
              },
          .write =
              [member](const BackboneConfig& c) {
                const auto* blocks = std::get_if<BigBirdAttention>(&c.attention);
                return blocks ? json(blocks->*member) : Key::omitted;
              }};
}
const Key attention_type{
    .name = "attention_type",
    .absent = "block_sparse",
    .read =
        [](BackboneConfig& c, const Given& in) {
          const auto type = in.as<std::string>();
          require<ConfigError>(type == "block_sparse" || type == "original_full", in.path, ": attention_type is '",
                               type, "'; 'block_sparse' and 'original_full' can be imported");
          if (type == "original_full") {
            c.attention = FullAttention{};
            return;
          }
          c.attention = BigBirdAttention{};
          log_info("import",
                   "attention_type is block_sparse: outputs differ from those of transformers, which has no random "
                   "blocks in evaluation");
        },
    .write =
        [](const BackboneConfig& c) {
          return json(std::holds_alternative<BigBirdAttention>(c.attention) ? "block_sparse" : "original_full");
        }};

const Keys big_bird =
    with_defaults(encoder, {{"vocab_size", 50358}, {"hidden_act", "gelu_new"}, {"max_position_embeddings", 4096}}) +
    causal(2) +
    Keys{attention_type,
         block_sparse_key("block_size", &BigBirdAttention::block_size, 64),
         block_sparse_key("num_random_blocks", &BigBirdAttention::num_random_blocks, 3),
         only("use_bias", true),
         only("rescale_embeddings", false),
         only("position_embedding_type", "absolute")};

const Keys albert = with_defaults(encoder, {{"vocab_size", 30000},
                                            {"hidden_size", 4096},
                                            {"num_attention_heads", 64},
                                            {"intermediate_size", 16384},
                                            {"hidden_act", "gelu_new"},
                                            {"hidden_dropout_prob", 0},
                                            {"attention_probs_dropout_prob", 0}}) +
                    Keys{embedding_size, field("num_hidden_groups", &BackboneConfig::num_hidden_groups, 1),
                         field("inner_group_num", &BackboneConfig::inner_group_num, 1), position_type};

const Keys electra =
    with_defaults(encoder, {{"hidden_size", 256}, {"num_attention_heads", 4}, {"intermediate_size", 1024}}) +
    causal(nullptr) + Keys{embedding_size, position_type};

const Keys distilbert{
    field("vocab_size", &BackboneConfig::vocab_size, 30522),
    field("dim", &BackboneConfig::hidden_size, 768),
    field("n_layers", &BackboneConfig::num_hidden_layers, 6),
    field("n_heads", &BackboneConfig::num_attention_heads, 12),
    field("hidden_dim", &BackboneConfig::intermediate_size, 3072),
    field("activation", &BackboneConfig::hidden_act, "gelu"),
    field("dropout", &BackboneConfig::hidden_dropout_prob, 0.1),
    field("attention_dropout", &BackboneConfig::attention_probs_dropout_prob, 0.1),
    field("max_position_embeddings", &BackboneConfig::max_position_embeddings, 512),
    field("initializer_range", &BackboneConfig::initializer_range, 0.02),
    field("tie_word_embeddings", &BackboneConfig::tie_word_embeddings, true),
    padding(0),
    {.name = "sinusoidal_pos_embds",
     .absent = false,
     // transformers 5 trains this table too.
     .read =
         [](BackboneConfig& c, const Given& in) {
           c.position_embeddings = in.as<bool>() ? PositionEmbeddings::sinusoidal_start : PositionEmbeddings::learned;
         },
     .write = [](const BackboneConfig& c) { return json(c.position_embeddings != PositionEmbeddings::learned); }}};

AlternatingAttention& alternating(BackboneConfig& c) { return std::get<AlternatingAttention>(c.attention); }
const AlternatingAttention& alternating(const BackboneConfig& c) { return std::get<AlternatingAttention>(c.attention); }

/// A key of ModernBERT's attention.
template <class T>
Key of_alternating(const char* name, T AlternatingAttention::* member, std::type_identity_t<T> absent) {
  return {.name = name,
          .absent = absent,
          .read = [member](BackboneConfig& c, const Given& in) { alternating(c).*member = in.as<T>(); },
          .write = [member](const BackboneConfig& c) { return json(alternating(c).*member); }};
}

/// Which layers have full attention: a key of transformers 4, where they are every n-th one.
const Key every_nth_layer{
    .name = "global_attn_every_n_layers",
    .absent = 3,
    .read =
        [](BackboneConfig& c, const Given& in) {
          const auto n = in.as<int64_t>();
          require<ConfigError>(n > 0, in.path, ": global_attn_every_n_layers is ", n, "; write a number above 0");
          alternating(c).global_attn_every_n_layers = n;
        },
    .write =
        [](const BackboneConfig& c) {
          const auto& kind = alternating(c);
          return kind.global_layers.empty() ? json(kind.global_attn_every_n_layers) : Key::omitted;
        }};

/// The same as transformers 5 has it, layer by layer; it counts where both are there.
const Key layer_types{
    .name = "layer_types",
    .may_be_null = true,
    .read =
        [](BackboneConfig& c, const Given& in) {
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
          require<ConfigError>(!full.empty() || types.empty(), in.path,
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
        [](const BackboneConfig& c) {
          auto types = json::array();
          for (int64_t i = 0; i < c.num_hidden_layers; ++i)
            types.push_back(alternating(c).is_global(i) ? "full_attention" : "sliding_attention");
          return types;
        }};

/// Rotary positions as transformers 5 has them; what it says counts before global_rope_theta and local_rope_theta.
const Key rope_parameters{
    .name = "rope_parameters",
    .may_be_null = true,
    .read =
        [](BackboneConfig& c, const Given& in) {
          if (in.value.is_null()) return;
          for (const auto& [type, theta] : {std::pair{"full_attention", &AlternatingAttention::global_rope_theta},
                                            {"sliding_attention", &AlternatingAttention::local_rope_theta}}) {
            const auto found = in.value.find(type);
            if (found == in.value.end() || found->is_null()) continue;
            std::string kind = "default";
            double rotated = 1;
            take(*found, "rope_type", kind, in.path), take(*found, "partial_rotary_factor", rotated, in.path);
            require<ConfigError>(kind == "default" && rotated == 1, in.path, ": rope_parameters of ", type, " is ",
                                 found->dump(), "; only rope_type 'default' of whole heads can be imported");
            take(*found, "rope_theta", alternating(c).*theta, in.path);
          }
        },
    .write =
        [](const BackboneConfig& c) {
          const auto of = [](double theta) { return json{{"rope_theta", theta}, {"rope_type", "default"}}; };
          return json{{"full_attention", of(alternating(c).global_rope_theta)},
                      {"sliding_attention", of(alternating(c).local_rope_theta)}};
        }};

const Keys modernbert{field("vocab_size", &BackboneConfig::vocab_size, 50368),
                      field("hidden_size", &BackboneConfig::hidden_size, 768),
                      field("num_hidden_layers", &BackboneConfig::num_hidden_layers, 22),
                      field("num_attention_heads", &BackboneConfig::num_attention_heads, 12),
                      field("intermediate_size", &BackboneConfig::intermediate_size, 1152),
                      field("hidden_activation", &BackboneConfig::hidden_act, "gelu"),
                      field("max_position_embeddings", &BackboneConfig::max_position_embeddings, 8192),
                      field("initializer_range", &BackboneConfig::initializer_range, 0.02),
                      derived("initializer_cutoff_factor", 2.0, [](const BackboneConfig&) { return json(2.0); }),
                      field("norm_eps", &BackboneConfig::layer_norm_eps, 1e-5),
                      field("norm_bias", &BackboneConfig::norm_bias, false),
                      field("attention_bias", &BackboneConfig::attention_bias, false),
                      field("mlp_bias", &BackboneConfig::mlp_bias, false),
                      field("classifier_bias", &BackboneConfig::classifier_bias, false),
                      field("decoder_bias", &BackboneConfig::decoder_bias, true),
                      only("classifier_activation", "gelu"),
                      field("embedding_dropout", &BackboneConfig::hidden_dropout_prob, 0),
                      field("attention_dropout", &BackboneConfig::attention_probs_dropout_prob, 0),
                      field("mlp_dropout", &BackboneConfig::activation_dropout, 0),
                      field("tie_word_embeddings", &BackboneConfig::tie_word_embeddings, true),
                      padding(50283),
                      of_alternating("local_attention", &AlternatingAttention::local_attention, 128),
                      of_alternating("global_rope_theta", &AlternatingAttention::global_rope_theta, 160000),
                      of_alternating("local_rope_theta", &AlternatingAttention::local_rope_theta, 10000),
                      every_nth_layer,
                      layer_types,
                      rope_parameters};

const Keys gpt2{
    field("vocab_size", &BackboneConfig::vocab_size, 50257),
    field("n_embd", &BackboneConfig::hidden_size, 768),
    field("n_layer", &BackboneConfig::num_hidden_layers, 12),
    field("n_head", &BackboneConfig::num_attention_heads, 12),
    field("n_positions", &BackboneConfig::max_position_embeddings, 1024),
    {.name = "n_inner",
     .may_be_null = true,
     .read = [](BackboneConfig& c,
                const Given& in) { c.intermediate_size = in.value.is_null() ? 4 * c.hidden_size : in.as<int64_t>(); },
     .write = [](const BackboneConfig& c) { return json(c.intermediate_size); }},
    field("activation_function", &BackboneConfig::hidden_act, "gelu_new"),
    field("resid_pdrop", &BackboneConfig::hidden_dropout_prob, 0.1),
    derived("embd_pdrop", 0.1, [](const BackboneConfig& c) { return json(c.hidden_dropout_prob); }),
    field("attn_pdrop", &BackboneConfig::attention_probs_dropout_prob, 0.1),
    field("layer_norm_epsilon", &BackboneConfig::layer_norm_eps, 1e-5),
    field("initializer_range", &BackboneConfig::initializer_range, 0.02),
    field("tie_word_embeddings", &BackboneConfig::tie_word_embeddings, true),
    id("eos_token_id", &BackboneConfig::eos_token_id, 50256),
    derived("bos_token_id", 50256,
            [](const BackboneConfig& c) { return c.eos_token_id >= 0 ? json(c.eos_token_id) : json(); }),
    {.name = "pad_token_id",
     .may_be_null = true,
     .read = [](BackboneConfig& c, const Given& in) { c.pad_token_id = in.value.is_null() ? 0 : in.as<int64_t>(); }},
    only("scale_attn_weights", true),
    only("scale_attn_by_inverse_layer_idx", false),
    only("add_cross_attention", false)};

/// Keys that T5 and mT5 share.
const Keys t5_and_mt5{
    field("vocab_size", &BackboneConfig::vocab_size, 32128),
    field("d_model", &BackboneConfig::hidden_size, 512),
    {.name = "d_kv",
     .absent = 64,
     .read = [](BackboneConfig& c, const Given& in) { c.d_kv = in.as<int64_t>(); },
     .write = [](const BackboneConfig& c) { return json(c.head_width()); }},
    field("d_ff", &BackboneConfig::intermediate_size, 2048),
    field("num_layers", &BackboneConfig::num_hidden_layers, 6),
    decoder_size("num_decoder_layers", &EncoderDecoderConfig::num_decoder_layers, &BackboneConfig::num_hidden_layers,
                 nullptr),
    field("num_heads", &BackboneConfig::num_attention_heads, 8),
    dropout("dropout_rate", 0.1),
    field("layer_norm_epsilon", &BackboneConfig::layer_norm_eps, 1e-6),
    field("relative_attention_num_buckets", &BackboneConfig::relative_attention_num_buckets, 32),
    field("relative_attention_max_distance", &BackboneConfig::relative_attention_max_distance, 128),
    {.name = "feed_forward_proj",
     .absent = "relu",
     .read =
         [](BackboneConfig& c, const Given& in) {
           const auto activation = in.as<std::string>();
           const bool gated = activation.starts_with("gated-");
           c.feed_forward = gated ? FeedForward::gated : FeedForward::plain;
           c.hidden_act = gated ? activation.substr(6) : activation;
           if (activation == "gated-gelu") c.hidden_act = "gelu_new";
         },
     .write =
         [](const BackboneConfig& c) {
           if (c.feed_forward != FeedForward::gated) return json(c.hidden_act);
           return json("gated-" + (c.hidden_act == "gelu_new" ? "gelu" : c.hidden_act));
         }},
    {.name = "pad_token_id",
     .absent = 0,
     .read = [](BackboneConfig& c, const Given& in) { c.pad_token_id = in.as<int64_t>(); },
     .write = [](const BackboneConfig& c) { return json(c.pad_token_id); }},
    id("eos_token_id", &BackboneConfig::eos_token_id, 1),
    field("decoder_start_token_id", &EncoderDecoderConfig::decoder_start_token_id, 0),
    id("forced_bos_token_id", &EncoderDecoderConfig::forced_bos_token_id, nullptr),
    id("forced_eos_token_id", &EncoderDecoderConfig::forced_eos_token_id, nullptr),
    derived("is_encoder_decoder", true, [](const BackboneConfig& c) { return json(c.is_encoder_decoder()); }),
};

/// The class ties its head whatever the file says, unless the weights differ (`tie_tables`). The value in the file
/// decides whether states are scaled before the head: version 1.1 has false.
const Keys t5 =
    t5_and_mt5 +
    Keys{{.name = "tie_word_embeddings",
          .absent = true,
          .read = [](BackboneConfig& c,
                     const Given& in) { c.tie_word_embeddings = c.scale_decoder_outputs = in.as<bool>(); },
          .write = [](const BackboneConfig& c) { return json(c.tie_word_embeddings || c.scale_decoder_outputs); }},
         {.name = "scale_decoder_outputs",
          .read =
              [](BackboneConfig& c, const Given& in) {
                if (!in.value.is_null()) c.scale_decoder_outputs = in.as<bool>();
              },
          .write = [](const BackboneConfig& c) { return json(c.scale_decoder_outputs); }}};
const Keys mt5 = with_defaults(t5_and_mt5, {{"vocab_size", 250112},
                                            {"d_ff", 1024},
                                            {"num_layers", 8},
                                            {"num_heads", 6},
                                            {"feed_forward_proj", "gated-gelu"}}) +
                 Keys{{.name = "tie_word_embeddings",
                       .absent = true,
                       .read =
                           [](BackboneConfig& c, const Given& in) {
                             c.tie_word_embeddings = in.as<bool>();
                             c.scale_decoder_outputs = false;
                           },
                       .write = [](const BackboneConfig& c) { return json(c.tie_word_embeddings); }}};

const Keys bart{
    field("vocab_size", &BackboneConfig::vocab_size, 50265),
    field("d_model", &BackboneConfig::hidden_size, 1024),
    field("encoder_layers", &BackboneConfig::num_hidden_layers, 12),
    field("encoder_attention_heads", &BackboneConfig::num_attention_heads, 16),
    field("encoder_ffn_dim", &BackboneConfig::intermediate_size, 4096),
    decoder_size("decoder_layers", &EncoderDecoderConfig::num_decoder_layers, &BackboneConfig::num_hidden_layers, 12),
    decoder_size("decoder_attention_heads", &EncoderDecoderConfig::decoder_attention_heads,
                 &BackboneConfig::num_attention_heads, 16),
    decoder_size("decoder_ffn_dim", &EncoderDecoderConfig::decoder_ffn_dim, &BackboneConfig::intermediate_size, 4096),
    field("activation_function", &BackboneConfig::hidden_act, "gelu"),
    field("dropout", &BackboneConfig::hidden_dropout_prob, 0.1),
    field("attention_dropout", &BackboneConfig::attention_probs_dropout_prob, 0),
    field("activation_dropout", &BackboneConfig::activation_dropout, 0),
    field("max_position_embeddings", &BackboneConfig::max_position_embeddings, 1024),
    field("init_std", &BackboneConfig::initializer_range, 0.02),
    field("scale_embedding", &BackboneConfig::scale_embedding, false),
    field("tie_word_embeddings", &BackboneConfig::tie_word_embeddings, true),
    padding(1),
    id("eos_token_id", &BackboneConfig::eos_token_id, 2),
    derived("bos_token_id", 0, [](const BackboneConfig&) { return json(0); }),
    {.name = "decoder_start_token_id",
     .absent = 2,
     .may_be_null = true,
     // Without a start token, the decoder starts with bos_token_id.
     .read =
         [](BackboneConfig& c, const Given& in) {
           auto& start = encoder_decoder(c).decoder_start_token_id;
           start = 0;
           if (in.value.is_null())
             take(in.file, "bos_token_id", start, in.path);
           else
             start = in.as<int64_t>();
         },
     .write = [](const BackboneConfig& c) { return json(encoder_decoder(c).decoder_start_token_id); }},
    id("forced_bos_token_id", &EncoderDecoderConfig::forced_bos_token_id, nullptr),
    id("forced_eos_token_id", &EncoderDecoderConfig::forced_eos_token_id, 2),
    derived("is_encoder_decoder", true, [](const BackboneConfig& c) { return json(c.is_encoder_decoder()); }),
    derived("is_decoder", false, [](const BackboneConfig& c) { return json(c.is_decoder()); }),
};
const Keys pegasus = with_defaults(
    bart, {{"pad_token_id", 0}, {"eos_token_id", 1}, {"decoder_start_token_id", 0}, {"forced_eos_token_id", 1}});

const Keys xlnet{
    field("vocab_size", &BackboneConfig::vocab_size, 32000),
    {.name = "n_token",  // files of old versions
     .may_be_null = true,
     .read =
         [](BackboneConfig& c, const Given& in) {
           if (!in.file.contains("vocab_size")) take(in.file, "n_token", c.vocab_size, in.path);
         }},
    field("d_model", &BackboneConfig::hidden_size, 1024),
    field("n_layer", &BackboneConfig::num_hidden_layers, 24),
    field("n_head", &BackboneConfig::num_attention_heads, 16),
    {.name = "d_head",
     .may_be_null = true,
     .read =
         [](BackboneConfig& c, const Given& in) {
           const int64_t own = c.num_attention_heads > 0 ? c.head_width() : 0,
                         head = in.value.is_null() ? own : in.as<int64_t>();
           require<ConfigError>(head == own, in.path, ": d_head ", head, " is not d_model / n_head, ", own,
                                "; only that can be imported");
         },
     .write = [](const BackboneConfig& c) { return json(c.head_width()); }},
    field("d_inner", &BackboneConfig::intermediate_size, 4096),
    field("ff_activation", &BackboneConfig::hidden_act, "gelu"),
    dropout("dropout", 0.1),
    field("initializer_range", &BackboneConfig::initializer_range, 0.02),
    field("layer_norm_eps", &BackboneConfig::layer_norm_eps, 1e-12),
    field("pad_token_id", &BackboneConfig::pad_token_id, 5),
    field("tie_word_embeddings", &BackboneConfig::tie_word_embeddings, true),
    {.name = "attn_type",
     .absent = "bi",
     .read =
         [](BackboneConfig& c, const Given& in) {
           const auto type = in.as<std::string>();
           require<ConfigError>(type == "bi" || type == "uni", in.path, ": attn_type is '", type,
                                "'; 'bi' and 'uni' can be imported");
           part<TwoStreamConfig>(c).attn_type = choice_of<AttentionDirection>(type);
         },
     .write = [](const BackboneConfig& c) { return json(name_of(part<TwoStreamConfig>(c).attn_type)); }},
    field("clamp_len", &TwoStreamConfig::clamp_len, -1),
    count_or_null("mem_len", &TwoStreamConfig::mem_len, 512),
    count_or_null("reuse_len", &TwoStreamConfig::reuse_len, nullptr),
    field("bi_data", &TwoStreamConfig::bi_data, false),
    field("same_length", &TwoStreamConfig::same_length, false),
    derived("untie_r", true, [](const BackboneConfig&) { return json(true); }),
};

/// A model_type and its counterpart in Cloze.
struct Type {
  std::string name, class_prefix;
  ModelConfig model;
  Keys keys;
};

const std::vector<Type>& types() {
  static const Keys roberta = with_defaults(encoder, {{"pad_token_id", 1}}) + causal(2) + Keys{position_type};
  static const std::vector<Type> list{
      {"bert", "Bert", BertConfig{}, encoder + causal(nullptr) + Keys{position_type}},
      {"roberta", "Roberta", RobertaConfig{}, with_defaults(roberta, {{"vocab_size", 50265}})},
      {"xlm-roberta", "XLMRoberta", RobertaConfig{}, roberta},
      {"camembert", "Camembert", RobertaConfig{}, roberta},
      {"albert", "Albert", AlbertConfig{}, albert},
      {"electra", "Electra", ElectraConfig{}, electra},
      {"distilbert", "DistilBert", DistilBertConfig{}, distilbert},
      {"longformer", "Longformer", LongformerConfig{},
       with_defaults(encoder, {{"pad_token_id", 1}}) +
           Keys{attention_window, only("position_embedding_type", "absolute")}},
      {"big_bird", "BigBird", BigBirdConfig{}, big_bird},
      {"modernbert", "ModernBert", ModernBertConfig{}, modernbert},
      {"gpt2", "GPT2", Gpt2Config{}, gpt2},
      {"t5", "T5", T5Config{}, t5},
      {"mt5", "MT5", T5Config{}, mt5},
      {"bart", "Bart", BartConfig{}, bart},
      {"mbart", "MBart", MBartConfig{}, with_defaults(bart, {{"decoder_start_token_id", nullptr}})},
      {"pegasus", "Pegasus", PegasusConfig{}, pegasus},
      {"xlnet", "XLNet", XlnetConfig{}, xlnet},
  };
  return list;
}

/// The type of a model. A T5 with a tied head and unscaled states is an mT5.
const Type& type_of(const ModelConfig& model) {
  const auto& c = backbone_of(model);
  const bool is_mt5 = std::holds_alternative<T5Config>(model) && c.tie_word_embeddings && !c.scale_decoder_outputs;
  for (const auto& type : types())
    if (type.model.index() == model.index() && (type.name == "mt5") == is_mt5) return type;
  fail<ConfigError>(kind_of(model), " has no class at Hugging Face; export to torchscript");
}

/// Reads ids of generation_config.json: forced ids take precedence over config.json, other ids only fill gaps.
void read_generation_ids(const json& config, const Type& type, BackboneConfig& c, const std::string& config_path) {
  const auto path = std::filesystem::path(config_path).replace_filename("generation_config.json").string();
  if (!std::filesystem::exists(path)) return;
  const auto j = read_json(path);
  for (const auto& key : type.keys) {
    const bool forced = key.name.starts_with("forced_"),
               open = key.name == "eos_token_id" || key.name == "pad_token_id" || key.name == "decoder_start_token_id";
    if (!j.contains(key.name) || (!forced && !open)) continue;
    const auto& value = j[key.name];
    const bool given = config.contains(key.name) && !config[key.name].is_null();
    if (forced || (!given && !value.is_null()))
      key.read(c, {value.is_array() && value.size() == 1 ? value[0] : value, j, key.name, path});
    else if (given && !value.is_null() && value != config[key.name])
      log_warning("import", words(path, ": '", key.name, "' is ", value.dump(), ", but ", config[key.name].dump(),
                                  " in config.json, which is used"));
  }
}

}  // namespace

json read_json(const std::string& path) {
  require<CheckpointError>(std::filesystem::exists(path), path,
                           ": no such file; name a folder that `save_pretrained` made");
  const auto text = read_text(path, 64 << 20);
  const auto content = parse_json(text);
  if (!content.is_object())
    fail<CheckpointError>(path, ": is not a JSON object", json_fault(text), "; the file is damaged");
  return content;
}

ModelConfig read_model(const json& j, const std::string& path) {
  std::string name = "bert";
  take(j, "model_type", name, path);
  const auto type = std::find_if(types().begin(), types().end(), [&](const Type& t) { return t.name == name; });
  if (type == types().end()) {
    std::vector<std::string> known;
    std::string list;
    for (const auto& t : types()) {
      known.push_back(t.name);
      list += (list.empty() ? "" : ", ") + t.name;
    }
    fail<ConfigError>(path, ": model_type is '", name, "'", did_you_mean(name, known), "; this version imports ", list);
  }
  ModelConfig model = type->model;
  auto& c = backbone_of(model);
  c.initializer = Initializer::normal;
  c.freeze_pad_embedding = false;
  for (const auto& key : type->keys) {
    const auto found = j.find(key.name);
    const bool given = found != j.end() && (key.may_be_null || !found->is_null());
    key.read(c, {given ? *found : key.absent, j, key.name, path});
  }
  read_generation_ids(j, *type, c, path);
  require<ConfigError>(
      std::find(activation_names.begin(), activation_names.end(), c.hidden_act) != activation_names.end(), path,
      ": hidden_act is '", c.hidden_act, "', which is unknown", did_you_mean(c.hidden_act, activation_names));
  for (const int64_t size : {c.hidden_size, c.num_attention_heads, c.intermediate_size, c.vocab_size,
                             c.max_position_embeddings, c.inner_group_num})
    require<ConfigError>(size > 0, path, ": a size is zero or negative; the file is damaged");
  for (const int64_t size :
       {c.num_hidden_layers, c.type_vocab_size, c.embedding_size, c.num_hidden_groups, c.pad_token_id})
    require<ConfigError>(size >= 0, path, ": a size is negative; the file is damaged");
  // Ids that Cloze takes from the tokenizer; without one, they are exported again with the model.
  const auto id_or_none = [&](const char* key) {
    const auto found = j.find(key);
    return found != j.end() && found->is_number_integer() ? std::max<int64_t>(found->get<int64_t>(), -1) : -1;
  };
  const bool has_eos_key =
      std::any_of(type->keys.begin(), type->keys.end(), [](const auto& key) { return key.name == "eos_token_id"; });
  c.bos_token_id = id_or_none("bos_token_id");
  if (!has_eos_key) c.eos_token_id = id_or_none("eos_token_id");
  // A default of the class beyond a reduced vocabulary is unused.
  if (c.bos_token_id >= c.vocab_size) c.bos_token_id = -1;
  if (c.eos_token_id >= c.vocab_size) c.eos_token_id = -1;
  return model;
}

json model_json(const ModelConfig& model) {
  const auto& type = type_of(model);
  json j{{"model_type", type.name}};
  for (const auto& key : type.keys)
    if (auto value = key.write(backbone_of(model)); !value.is_discarded()) j[key.name] = std::move(value);
  return j;
}

std::string class_prefix(const ModelConfig& model) { return type_of(model).class_prefix; }

void keep_decoder(EncoderDecoderConfig& c) {
  c.num_hidden_layers = std::exchange(c.num_decoder_layers, 0);
  c.num_attention_heads = std::exchange(c.decoder_attention_heads, 0);
  c.intermediate_size = std::exchange(c.decoder_ffn_dim, 0);
  c.architecture = Architecture::decoder;
}

void keep_encoder(EncoderDecoderConfig& c) {
  c.num_decoder_layers = 0;
  c.architecture = Architecture::encoder;
}

}  // namespace cloze
