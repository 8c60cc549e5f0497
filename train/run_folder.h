#pragma once
// The run directory when a process begins to train.
#include "train/origin.h"
#include "train/session.h"

namespace cloze {

/// Creates the run directory with config, provenance and tokenizer, or checks that the one to resume was made with this
/// config and these tokens (`session.changed` says whether it was); from here on the log is written there. A branch
/// starts with the metrics of its run. A run that goes on with other tokens records them. Throws ConfigError, and Error
/// with the system's reason.
void open_run_folder(Session& session, const Origin& origin);

}  // namespace cloze
