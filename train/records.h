#pragma once
// The facts that rows of metrics.jsonl share, and summary.json.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "evaluation/suites/suite.h"
#include "train/training.h"

namespace cloze {

/// What every row of metrics.jsonl has: how far the run has come.
nlohmann::json row_of(const Training& training);

/// {NAME_loss, NAME_accuracy, ...} of held-out losses, as a row of metrics.jsonl has them.
nlohmann::json flat_losses(const std::vector<HeldOut>& held_out);

/// The content of summary.json: what was used up, held-out losses with their baselines, training losses, the best
/// checkpoint, memory and times, answers to suites, and what the run has learned of its task.
///
/// losses    training losses of the last line of the log; null: this process has written none, and that of an earlier
///           one is read
std::string summary_of(const Training& training, const PretrainReport& report, const nlohmann::json& losses);

}  // namespace cloze
