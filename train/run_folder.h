#pragma once
// The run directory when a process begins to train.
#include "train/origin.h"
#include "train/session.h"

namespace cloze {

/// Creates the run directory with config, provenance and tokenizer, or checks that the one to resume was made with this
/// config and these tokens (`session.changed` says whether it was); from here on the log is written there. A branch
/// starts with the metrics of its run. What this process changes in a run is recorded in its history and logged, and so
/// are other tokens. Throws ConfigError, and Error with the system's reason.
void open_run_folder(Session& session, const Origin& origin);

}  // namespace cloze
