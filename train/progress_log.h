#pragma once
// What training says in the log.
#include "train/session.h"

namespace cloze {

/// The lines before the first step: text, model, objectives and what they predict, deviations from the preset,
/// baselines.
void announce(const Session& session);

/// The progress line: means over the steps since the previous line of the log.
///
/// rate    learning rate of the last step
/// speed   tokens per second
/// plain   also where the log is not a terminal
void show_progress(const Session& session, double rate, double speed, bool plain);

}  // namespace cloze
