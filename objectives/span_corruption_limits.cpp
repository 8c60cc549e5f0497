#include "objectives/limits.h"
#include "objectives/span_corruption.h"

namespace cloze {

void check_limits(const SpanCorruptionConfig& c, const ObjectiveSetting& in, Limits& limits) {
  require_generative(c.kind, c, in, limits);
}

}  // namespace cloze
