#pragma once
// What comes before the first step of a process that trains a run.
#include "train/session.h"

namespace cloze {

/// Checks what a run needs, makes its network with new weights or those of its origin, and opens its folder. Throws
/// ConfigError, DataError, CheckpointError.
void start(Session& session);

}  // namespace cloze
