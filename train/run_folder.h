#pragma once
// The weights that a process starts from, and the run directory when it begins to train.
#include <optional>
#include <string>

#include "train/branch.h"
#include "train/pretrain.h"
#include "train/training.h"

namespace cloze {

/// At most one is given; without any, the weights are drawn.
struct Origin {
  std::string checkpoint{};             ///< of the run itself, which is resumed
  std::optional<BranchPoint> branch{};  ///< of the run that this one branches from
  std::string initial{};                ///< the run or checkpoint whose weights initialize this run
};

/// The origin of a run. One that was killed before its first checkpoint has the origin that it began with. Throws
/// CheckpointError if that is missing or its record is damaged.
Origin find_origin(const RunConfig& config, const PretrainOptions& options);

/// Creates the run directory with config, provenance and tokenizer, or checks that the one to resume was made with this
/// config and these tokens; from here on the log is written there. A branch starts with the metrics of its run. What
/// this process changes in a run is recorded in its history and logged, and so are other tokens. Returns whether its
/// rows may differ from those of the run so far. Throws ConfigError, and Error with the system's reason.
bool open_run_folder(Training& training, const Origin& origin);

}  // namespace cloze
