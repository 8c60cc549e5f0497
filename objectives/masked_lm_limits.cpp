#include "objectives/limits.h"
#include "objectives/masked_lm.h"

namespace cloze {

void check_limits(const MlmConfig& c, const ObjectiveSetting& in, Limits& limits) {
  check_maskings(c.kind, c, in, limits);
  require_bidirectional(c.kind, in, limits);
}

}  // namespace cloze
