#include "objectives/limits.h"
#include "objectives/span_boundary.h"

namespace cloze {

void check_limits(const SboConfig& c, const ObjectiveSetting& in, Limits& limits) {
  require_bidirectional(c.kind, in, limits);
  limits.forbid(!in.has<MlmConfig>(),
                "sbo predicts the spans that mlm chooses; add mlm (like: spanbert) to the objectives");
}

}  // namespace cloze
