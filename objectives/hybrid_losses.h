#pragma once
// The losses of objectives that train two.
#include "objectives/causal_lm.h"
#include "objectives/config.h"
#include "objectives/mntp.h"

namespace cloze {

/// The objectives that score the losses of a hybrid one by one, each weighted by its share of the rows; empty: it has
/// one loss.
inline Objectives hybrid_losses(const MntpConfig& objective) {
  if (objective.causal_share == 0) return {};
  MntpConfig masked = objective;
  masked.causal_share = 0;
  masked.weight *= 1 - objective.causal_share;
  ClmConfig causal;
  static_cast<NextTokenTerms&>(causal) = objective;
  causal.weight *= objective.causal_share;
  return {masked, causal};
}

}  // namespace cloze
