#pragma once
// The rows of a training step, as the config and its text decide them.
#include "data/token_store.h"
#include "objectives/step_rows.h"
#include "run/config.h"

namespace cloze {

/// The rows of the first phase, and how long its run will be: its steps, else its epochs, as budgets in epochs and
/// words give them, or else one in tokens. That counts special tokens, of which the store knows none, so that such a
/// run ends some percent before these epochs do.
StepRows training_rows(const TrainConfig& train, const TokenStore& store);

}  // namespace cloze
