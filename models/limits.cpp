#include "models/stack_parts.h"

#include <algorithm>

#include "models/attention/config.h"

namespace cloze {

namespace {

void check_sizes(const TransformerConfig& m, const LayerSharing& sharing, Limits& limits) {
  limits.forbid(m.d_kv == 0 && m.hidden_size % m.num_attention_heads != 0, "model.hidden_size ", m.hidden_size,
                " is not a multiple of model.num_attention_heads ", m.num_attention_heads,
                "; choose a width that is divisible by the number of heads");
  limits.forbid(sharing.num_hidden_groups > m.num_hidden_layers, "model.num_hidden_groups ", sharing.num_hidden_groups,
                " is more than model.num_hidden_layers ", m.num_hidden_layers, "; lower it");
}

/// What the relative positions of a model ask of the rest of it.
void check_positions(const TransformerConfig& m, const PrefixAttention& prefix, Limits& limits) {
  const auto& relative = m.positions.relative;
  const auto& facts = facts_of(relative);
  const auto name = named_in_config(m.positions);
  limits.forbid(!computes(m.attention, relative), "model.", name, " needs attention of kind ", attention_for(relative),
                ", it is ", kind_of(m.attention), "; choose that, or other positions");
  limits.forbid(facts.even_heads && m.head_width() % 2 != 0, "model.", name,
                " rotates pairs of numbers, and heads of width ", m.head_width(),
                " are odd; choose model.hidden_size and num_attention_heads with an even quotient");
  limits.forbid(!facts.two_stacks && m.is_encoder_decoder(), "model.", name,
                " is for models of one stack; choose model.architecture: encoder or decoder, or other positions");
  limits.forbid(prefix.prefix_lm && !facts.prefix, "model.", name,
                " does not go with model.prefix_lm; choose other positions, or set prefix_lm to false");
  const auto* bias = std::get_if<BucketBias>(&relative);
  limits.forbid(bias && bias->max_distance <= bias->buckets / 2, "model.relative_attention_max_distance ",
                bias ? bias->max_distance : 0, " leaves no distances for the logarithmic buckets; raise it above ",
                bias ? bias->buckets / 2 : 0);
}

void check_prefix(const TransformerConfig& m, const PrefixAttention& prefix, Limits& limits) {
  limits.forbid(prefix.prefix_lm && !is_full(m.attention), "model.prefix_lm needs attention of kind full, it is ",
                kind_of(m.attention), "; choose that, or set prefix_lm to false");
}

/// What each kind of attention forbids.
struct AttentionLimits {
  const TransformerConfig& model;
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

void check_limits(const TransformerConfig& model, const StackParts& parts, Limits& limits) {
  check_sizes(model, parts.sharing, limits);
  check_positions(model, parts.prefix, limits);
  check_prefix(model, parts.prefix, limits);
  std::visit(AttentionLimits{model, limits}, *model.attention);
}

}  // namespace cloze
