#pragma once
// The checkpoints of a run: restored when a process begins to train it, saved while it trains.
#include <string>

#include "train/session.h"

namespace cloze {

/// Continues from a checkpoint: state, weights, moments, mems. Throws CheckpointError.
void restore(Session& session, const std::string& checkpoint);

/// Throws Error if the disk has no room for the checkpoints of this run.
void check_disk(const Session& session);

/// Saves a checkpoint, unless this step has been saved, and removes old ones. A failure ends the run only if `must`, or
/// where the folder of the run is no longer at its place.
void save(Session& session, bool must);

/// Saves the checkpoint of a step that reached numbers of checkpoint.at_words, and says so. Throws Error.
void save_milestone(Session& session);

/// Names the checkpoint of the best step the best one of the run; without one, nothing is written.
void mark_best(Session& session);

}  // namespace cloze
