#include "models/attention/alternating.h"

#include "models/attention/attention.h"

namespace cloze {

std::shared_ptr<Attention> AlternatingAttention::make(const AttentionSizes& sizes, int64_t layer,
                                                      PositionScheme& positions) const {
  const bool global = is_global(layer);
  return make_full_attention(
      sizes, {.window = global ? -1 : window(), .rope_theta = global ? global_rope_theta : local_rope_theta},
      positions);
}

}  // namespace cloze
