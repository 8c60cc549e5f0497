#pragma once
// The prepared tokens that a config trains on, and the rows of a training step.
#include <string>

#include "data/store/token_store.h"
#include "objectives/collator.h"
#include "run/config/config.h"

namespace cloze {

/// The rows of the first phase, and how long its run will be: its steps, else its epochs, as budgets in epochs and
/// words give them, or else one in tokens. That counts special tokens, of which the store knows none, so that such a
/// run ends some percent before these epochs do.
StepRows training_rows(const TrainConfig& train, const TokenStore& store);

/// The split `train` or `valid` of data.tokens; to train on, data.mixture where it is given. Where an objective of
/// training or evaluation needs sentinels and the tokenizer has none, they follow its tokens, so that one prepared
/// folder serves every model; that is logged with the training split. Throws DataError, also as read_mixture.
TokenStore open_tokens(const RunConfig& config, const std::string& split);

/// What the rows of a run are made of with this config, which has no phases, from `start` on.
RowContext row_context(const RunConfig& config, const TokenStore& store, const RowsStart& start);

/// The rows of a text that a run is trained on with this config, which has no phases, from `start` on.
Collator text_rows(const RunConfig& config, const TokenStore& store, const RowsStart& start = {});

}  // namespace cloze
