#pragma once
// The phases of a run: rows of other lengths and numbers from some share of the budget on.
#include "train/training.h"

namespace cloze {

/// Makes the rows of the phase that the progress names, from where it says that they began. Throws ConfigError if the
/// config has fewer phases.
void open_phase(Training& training);

/// The next phase is due.
bool phase_is_over(const Training& training);

/// Moves on to the phase that is due. Its order begins in the epoch that the run is in, as far into it as the run is,
/// at the next step of the new size.
void begin_due_phase(Training& training);

/// `32 sequences of up to 128 tokens`, of a step in this phase.
std::string rows_of_phase(const RunConfig& config, int64_t phase);

}  // namespace cloze
