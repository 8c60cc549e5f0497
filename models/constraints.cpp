#include "models/stack_parts.h"

namespace cloze {

namespace {

void check_sizes(const TransformerConfig& m, const LayerSharing& sharing, Constraints& constraints) {
  constraints.forbid(m.d_kv == 0 && m.hidden_size % m.num_attention_heads != 0, "model.hidden_size ", m.hidden_size,
                     " is not a multiple of model.num_attention_heads ", m.num_attention_heads,
                     "; choose a width that is divisible by the number of heads");
  constraints.forbid(sharing.num_hidden_groups > m.num_hidden_layers, "model.num_hidden_groups ",
                     sharing.num_hidden_groups, " is more than model.num_hidden_layers ", m.num_hidden_layers,
                     "; lower it");
}

/// What the relative positions of a model ask of the rest of it.
void check_positions(const TransformerConfig& m, const PrefixAttention& prefix, Constraints& constraints) {
  const auto& relative = m.positions.relative;
  const auto& facts = position_facts(relative);
  const auto name = named_in_config(m.positions);
  constraints.forbid(!computes(m.attention, relative), "model.", name, " needs attention of kind ",
                     attention_for(relative), ", it is ", kind_of(m.attention), "; choose that, or other positions");
  constraints.forbid(facts.even_heads && m.head_width() % 2 != 0, "model.", name,
                     " rotates pairs of numbers, and heads of width ", m.head_width(),
                     " are odd; choose model.hidden_size and num_attention_heads with an even quotient");
  constraints.forbid(!facts.two_stacks && m.is_encoder_decoder(), "model.", name,
                     " is for models of one stack; choose model.architecture: encoder or decoder, or other positions");
  constraints.forbid(prefix.prefix_lm && !facts.prefix, "model.", name,
                     " does not go with model.prefix_lm; choose other positions, or set prefix_lm to false");
  const auto* bias = std::get_if<BucketBias>(&relative);
  constraints.forbid(bias && bias->max_distance <= bias->buckets / 2, "model.relative_attention_max_distance ",
                     bias ? bias->max_distance : 0, " leaves no distances for the logarithmic buckets; raise it above ",
                     bias ? bias->buckets / 2 : 0);
}

void check_prefix(const TransformerConfig& m, const PrefixAttention& prefix, Constraints& constraints) {
  constraints.forbid(prefix.prefix_lm && !is_full(m.attention), "model.prefix_lm needs attention of kind full, it is ",
                     kind_of(m.attention), "; choose that, or set prefix_lm to false");
}

}  // namespace

void check_constraints(const TransformerConfig& model, const StackParts& parts, Constraints& constraints) {
  check_sizes(model, parts.sharing, constraints);
  check_positions(model, parts.prefix, constraints);
  check_prefix(model, parts.prefix, constraints);
  check_attention(model, model.num_hidden_layers, model.is_decoder(), constraints);
}

}  // namespace cloze
