#pragma once
// What training records: rows of metrics.jsonl, and summary.json.
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/session.h"

namespace cloze {

/// Writes a row of metrics.jsonl. Throws CheckpointError where the folder of the run is no longer at its place, as do
/// those that follow.
void record_row(Session& session, const nlohmann::json& row);

/// Writes a row of metrics.jsonl: means over the steps since the previous one.
///
/// rate    learning rate of the last step
/// speed   tokens per second since the previous row
void record_training(Session& session, double rate, double speed);

/// Writes a row of metrics.jsonl: the held-out losses of this step.
void record_held_out(Session& session);

/// The content of summary.json: what was used up, held-out losses with their baselines, training losses, the best
/// checkpoint, memory and times.
std::string summary_of(const Session& session, const PretrainReport& report);

}  // namespace cloze
