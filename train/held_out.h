#pragma once
// The held-out evaluation of a run while it trains, and its best step.
#include "train/session.h"

namespace cloze {

/// Whether an evaluation is due after a step that began at `share_before` of the budget.
bool evaluation_is_due(const Session& session, double share_before);

/// Whether evaluation.patience has run out.
bool patience_is_over(const Session& session);

/// Evaluates, and keeps track of the best step, of which a checkpoint is saved. A step that was evaluated before the
/// run was resumed is not counted again, nor is one at which no objective of the evaluation is active. A loss that is
/// not finite or far above that of guessing is never the best. Throws Interrupted after a signal, with nothing counted.
void evaluate_held_out(Session& session);

}  // namespace cloze
