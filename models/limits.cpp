#include "models/limits.h"

#include <algorithm>

#include "models/attention/config.h"

namespace cloze {

namespace {

bool is_full(const BackboneConfig& m) { return is_full(m.attention); }

void check_sizes(const BackboneConfig& m, const LayerSharing& sharing, Limits& limits) {
  limits.forbid(m.d_kv == 0 && m.hidden_size % m.num_attention_heads != 0, "model.hidden_size ", m.hidden_size,
                " is not a multiple of model.num_attention_heads ", m.num_attention_heads,
                "; choose a width that is divisible by the number of heads");
  limits.forbid(sharing.num_hidden_groups > m.num_hidden_layers, "model.num_hidden_groups ", sharing.num_hidden_groups,
                " is more than model.num_hidden_layers ", m.num_hidden_layers, "; lower it");
  limits.forbid(m.vocab_size > 0 && m.pad_token_id >= m.vocab_size, "model.pad_token_id ", m.pad_token_id,
                " is outside model.vocab_size ", m.vocab_size, "; name an id of the vocabulary");
}

void check_relative_buckets(const BackboneConfig& m, const RelativeBias& bias, Limits& limits) {
  if (bias.relative_attention_num_buckets == 0) return;
  limits.forbid(!is_full(m) || m.relative_positions > 0,
                "model.relative_attention_num_buckets needs attention of kind full and relative_positions 0, they are ",
                kind_of(m.attention), " and ", m.relative_positions, "; choose those, or another model");
  limits.forbid(bias.relative_attention_max_distance <= bias.relative_attention_num_buckets / 2,
                "model.relative_attention_max_distance ", bias.relative_attention_max_distance,
                " leaves no distances for the logarithmic buckets; raise it above ",
                bias.relative_attention_num_buckets / 2);
}

void check_relative_keys(const BackboneConfig& m, const StackParts& parts, Limits& limits) {
  if (!m.has_relative_keys()) return;
  const bool other_positions = m.relative_positions > 0 || parts.relative_bias.relative_attention_num_buckets > 0;
  limits.forbid(!is_full(m) || other_positions || m.is_encoder_decoder() || parts.prefix.prefix_lm,
                "model.position_embeddings ", m.position_embeddings,
                " needs an encoder-only or decoder-only model, attention of kind full, and neither other relative "
                "positions nor prefix_lm; choose other position embeddings");
}

void check_rotary(const BackboneConfig& m, Limits& limits) {
  if (m.position_embeddings != PositionEmbeddings::rotary) return;
  const bool rotates = is_full(m) || std::holds_alternative<AlternatingAttention>(*m.attention);
  limits.forbid(!rotates || m.relative_positions > 0,
                "model.position_embeddings rotary needs attention of kind full or alternating and "
                "relative_positions 0, they are ",
                kind_of(m.attention), " and ", m.relative_positions, "; choose those, or other positions");
  limits.forbid(m.head_width() % 2 != 0,
                "model.position_embeddings rotary rotates pairs of numbers, and heads of width ", m.head_width(),
                " are odd; choose model.hidden_size and num_attention_heads with an even quotient");
}

void check_relative_positions(const BackboneConfig& m, const PrefixAttention& prefix, Limits& limits) {
  limits.forbid(m.relative_positions > 0 && !is_full(m),
                "model.relative_positions needs attention of kind full, it is ", kind_of(m.attention),
                "; set relative_positions to 0, or choose kind: full");
  limits.forbid(prefix.prefix_lm && (!is_full(m) || m.relative_positions > 0),
                "model.prefix_lm needs attention of kind full without relative positions, it has kind ",
                kind_of(m.attention), " and relative_positions ", m.relative_positions,
                "; choose those, or set prefix_lm to false");
}

/// What each kind of attention forbids.
struct AttentionLimits {
  const BackboneConfig& model;
  Limits& limits;

  void operator()(const FullAttention&) const {}
  void operator()(const PerformerAttention&) const {}
  void operator()(const BigBirdAttention& kind) const { bidirectional(kind.kind); }
  void operator()(const LinformerAttention& kind) const {
    limits.forbid(kind.compressed > model.max_position_embeddings, "model.attention.compressed ", kind.compressed,
                  " is more than model.max_position_embeddings ", model.max_position_embeddings, "; lower it");
    bidirectional(kind.kind);
  }
  void operator()(const AlternatingAttention& kind) const {
    const auto& layers = kind.global_layers;
    const auto last = layers.empty() ? 0 : *std::max_element(layers.begin(), layers.end());
    limits.forbid(!layers.empty() && last >= model.num_hidden_layers, "model.attention.global_layers names layer ",
                  last, " of a stack with ", model.num_hidden_layers, ", whose first one is 0; leave it out");
    bidirectional(kind.kind);
  }
  void operator()(const WindowAttention& kind) const {
    one_or_per_layer("attention_window", kind.attention_window);
    one_or_per_layer("attention_dilation", kind.attention_dilation);
    limits.forbid(kind.dilated_heads > model.num_attention_heads, "model.attention.dilated_heads ", kind.dilated_heads,
                  " is more than model.num_attention_heads ", model.num_attention_heads, "; lower it");
    bidirectional(kind.kind);
  }

 private:
  void bidirectional(const char* kind) const {
    limits.forbid(model.is_decoder(), "model.attention of kind ", kind,
                  " is bidirectional; set model.architecture: encoder, or choose kind: full or performer");
  }
  void one_or_per_layer(const char* name, const std::vector<int64_t>& list) const {
    const auto count = static_cast<int64_t>(list.size());
    limits.forbid(count != 1 && count != model.num_hidden_layers, "model.attention.", name, " has ", count,
                  " values for ", model.num_hidden_layers, " layers; give one value, or one per layer");
  }
};

}  // namespace

void check_limits(const BackboneConfig& model, const StackParts& parts, Limits& limits) {
  check_sizes(model, parts.sharing, limits);
  check_relative_buckets(model, parts.relative_bias, limits);
  check_relative_keys(model, parts, limits);
  check_rotary(model, limits);
  check_relative_positions(model, parts.prefix, limits);
  std::visit(AttentionLimits{model, limits}, *model.attention);
}

}  // namespace cloze
