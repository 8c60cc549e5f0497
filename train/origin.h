#pragma once
// The weights that training starts from in a process.
#include <optional>
#include <string>

#include "train/branch.h"
#include "train/pretrain.h"

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

}  // namespace cloze
