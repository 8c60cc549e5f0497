#include <filesystem>

#include "cli/engine/parts.h"
#include "core/log.h"
#include "run/run.h"
#include "run/run_files.h"

namespace cloze {

namespace fs = std::filesystem;

std::string chosen_checkpoint(const std::string& path, CheckpointChoice choice) {
  const bool is_run = fs::exists(path + "/run.yaml");
  if (is_checkpoint_folder(path)) require_whole(path);
  if (!is_run) return path;  // a step folder, or refused by who opens it
  const auto found =
      choice == CheckpointChoice::best ? find_best_checkpoint(path) : FoundCheckpoint{.folder = find_checkpoint(path)};
  require<CheckpointError>(!found.folder.empty(), path, ": holds no valid checkpoint; train it, or import it again");
  log_info("run", words(found.folder, ": the ", found.is_best ? "best" : "newest", " checkpoint"));
  return found.folder;
}

}  // namespace cloze
