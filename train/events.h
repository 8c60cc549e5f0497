#pragma once
// What the hook of a run is told: one object of JSON for each event (docs/hooks.md).
#include "train/session.h"

namespace cloze {

/// A process begins, or goes on, to train the run.
void tell_started(Session& session);
/// The held-out losses of this step are known.
void tell_evaluated(Session& session);
/// A checkpoint of this step is saved.
void tell_checkpoint(Session& session);
/// All is done.
void tell_finished(Session& session, const PretrainReport& report);
/// The process ends by an error.
void tell_failed(Session& session, const std::exception& error);

/// Reports, once a process, that the run has diverged: to the hook, and as a warning. Throws Diverged where
/// train.on_divergence is stop.
void report_divergence(Session& session, const std::string& warning);

}  // namespace cloze
