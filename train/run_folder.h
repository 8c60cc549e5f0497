#pragma once
// The run directory when a process begins to train.
#include "train/origin.h"
#include "train/training.h"

namespace cloze {

/// Creates the run directory with config, provenance and tokenizer, or checks that the one to resume was made with this
/// config and these tokens; from here on the log is written there. A branch starts with the metrics of its run. What
/// this process changes in a run is recorded in its history and logged, and so are other tokens. Returns whether its
/// rows may differ from those of the run so far. Throws ConfigError, and Error with the system's reason.
bool open_run_folder(Training& training, const Origin& origin);

}  // namespace cloze
