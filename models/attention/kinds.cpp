#include "models/attention/kinds.h"

#include "core/config/boxed.inc"

namespace cloze {

template class Boxed<AttentionKind>;
[[gnu::used]] const auto makers_of_attention = makers_of<AttentionKind>(static_cast<const AttentionKind*>(nullptr));

std::string kind_of(const AttentionConfig& attention) {
  return std::visit([](const auto& kind) { return std::string(kind.kind); }, *attention);
}
bool is_full(const AttentionConfig& attention) { return std::holds_alternative<FullAttention>(*attention); }
bool bounds_length(const AttentionConfig& attention) {
  return std::visit([](const auto& kind) { return kind.bounds_length; }, *attention);
}
bool computes(const AttentionConfig& attention, const RelativePositions& relative) {
  const auto& facts = position_facts(relative);
  return !facts.full_attention || is_full(attention) ||
         (facts.alternating && std::holds_alternative<AlternatingAttention>(*attention));
}
bool takes_unpadded_rows(const AttentionConfig& attention, const RelativePositions& relative) {
  return !position_facts(relative).has_terms &&
         std::visit([](const auto& kind) { return kind.takes_unpadded_rows(); }, *attention);
}
std::string attention_for(const RelativePositions& relative) {
  return position_facts(relative).alternating ? "full or alternating" : "full";
}

void check_attention(const AttentionSizes& sizes, int64_t layers, bool is_decoder, Constraints& constraints) {
  const auto check = [&](const auto& kind) {
    if constexpr (requires { kind.check(sizes, layers, constraints); }) kind.check(sizes, layers, constraints);
    constraints.forbid(is_decoder && !kind.causal, "model.attention of kind ", kind.kind,
                       " is bidirectional; set model.architecture: encoder, or choose kind: full or performer");
  };
  std::visit(check, *sizes.attention);
}
double weights_of_attention(const AttentionSizes& sizes) {
  const auto weights = [&](const auto& kind) {
    if constexpr (requires { kind.weights(sizes); }) return kind.weights(sizes);
    return 0.0;
  };
  return std::visit(weights, *sizes.attention);
}

}  // namespace cloze
