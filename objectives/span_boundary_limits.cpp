#include "objectives/limits.h"
#include "objectives/span_boundary.h"

namespace cloze {

std::string prediction_words(const SboConfig& c) {
  return words("the tokens of a masked span, at most ", c.max_pair_targets, ", from the two beside it");
}

void check_limits(const SboConfig& c, const ObjectiveSetting& in, Limits& limits) {
  require_bidirectional(c.kind, in, limits);
  limits.forbid(!in.has<MlmConfig>(),
                "sbo predicts the spans that mlm chooses; add mlm (like: spanbert) to the objectives");
}

}  // namespace cloze
