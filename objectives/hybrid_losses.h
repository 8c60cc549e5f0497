#pragma once
// The losses of objectives that train two.
#include "objectives/config.h"

namespace cloze {

/// The objectives that score the losses of a hybrid one by one, each weighted by its share of the rows; empty: it has
/// one loss.
Objectives hybrid_losses(const MntpConfig& objective);

}  // namespace cloze
