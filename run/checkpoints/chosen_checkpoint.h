#pragma once
// The checkpoint of a run that a user means.
#include <array>
#include <string>
#include <vector>

#include "core/config/config_rule.h"

namespace cloze {

struct LoadedRun;

/// The checkpoint of a run that a verb takes.
enum class CheckpointChoice { best, newest };
constexpr auto choices(CheckpointChoice) {
  return std::array{Choice{CheckpointChoice::best, "best", "of the best held-out loss or figure, else the newest"},
                    Choice{CheckpointChoice::newest, "newest", "of the last step that was saved"}};
}

/// The runs that a verb evaluates, and the checkpoint of each.
struct RunSelection {
  std::vector<std::string> runs{};  ///< run directories or step folders
  CheckpointChoice checkpoint = CheckpointChoice::best;
  bool all_checkpoints = false;  ///< every checkpoint of the only run
  bool json = false;             ///< print one line of JSON
};

/// The step folder of a run that a verb takes, which is logged; a path that is no run directory as it is.
std::string chosen_checkpoint(const std::string& path, CheckpointChoice choice);

/// The step folders of a run, from the first on. Throws ConfigError for a path that is no run directory, or has none.
std::vector<std::string> all_checkpoints_of(const std::string& run);

/// Opens a checkpoint, to compute on the device of its run.
LoadedRun open_on_own_device(const std::string& checkpoint);

/// Opens it so; where the run trains and has removed it meanwhile, the one that is chosen then.
LoadedRun open_chosen(const std::string& path, CheckpointChoice choice);

/// Opens a checkpoint so. Throws CheckpointError for a step folder whose files are not those of its manifest.
LoadedRun open_intact(const std::string& checkpoint);

}  // namespace cloze
