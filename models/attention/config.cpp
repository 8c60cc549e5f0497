#include "models/attention/config.h"

#include "core/config/boxed.inc"
#include "models/attention/sizes.h"

namespace cloze {

template class Boxed<AttentionKind>;
template Boxed<AttentionKind>::Boxed(FullAttention);
template Boxed<AttentionKind>::Boxed(WindowAttention);
template Boxed<AttentionKind>::Boxed(AlternatingAttention);
template Boxed<AttentionKind>::Boxed(PerformerAttention);
template Boxed<AttentionKind>::Boxed(LinformerAttention);
template Boxed<AttentionKind>::Boxed(BigBirdAttention);

std::string kind_of(const AttentionConfig& attention) {
  return std::visit([](const auto& kind) { return std::string(kind.kind); }, *attention);
}
bool is_full(const AttentionConfig& attention) { return std::holds_alternative<FullAttention>(*attention); }
bool bounds_length(const AttentionConfig& attention) {
  return std::visit([](const auto& kind) { return kind.bounds_length; }, *attention);
}
bool computes(const AttentionConfig& attention, const RelativePositions& relative) {
  const auto& facts = facts_of(relative);
  return !facts.full_attention || is_full(attention) ||
         (facts.alternating && std::holds_alternative<AlternatingAttention>(*attention));
}
bool takes_unpadded_rows(const AttentionConfig& attention, const RelativePositions& relative) {
  if (const auto* performer = std::get_if<PerformerAttention>(&*attention))
    return performer->kernel != FeatureKernel::trigonometric;
  const bool by_rows = is_full(attention) || std::holds_alternative<AlternatingAttention>(*attention) ||
                       std::holds_alternative<WindowAttention>(*attention);
  return by_rows && !facts_of(relative).has_terms;
}
std::string attention_for(const RelativePositions& relative) {
  return facts_of(relative).alternating ? "full or alternating" : "full";
}

}  // namespace cloze
