#include "objectives/denoising.h"
#include "objectives/limits.h"

namespace cloze {

void check_limits(const DenoisingConfig& c, const ObjectiveSetting& in, Limits& limits) {
  require_generative(c.kind, c, in, limits);
}

}  // namespace cloze
