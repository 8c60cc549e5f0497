#include "run/checkpoints/chosen_checkpoint.h"

#include <algorithm>
#include <filesystem>

#include "core/log.h"
#include "run/device.h"
#include "run/folder.h"
#include "run/run.h"
#include "run/run_files.h"

namespace cloze {

namespace fs = std::filesystem;

std::string chosen_checkpoint(const std::string& path, CheckpointChoice choice) {
  const bool is_run = fs::exists(path + "/run.yaml");
  if (is_step_folder(path)) require_intact(path);
  if (!is_run) return path;  // a step folder, or refused by who opens it
  const auto checkpoint =
      choice == CheckpointChoice::best ? find_best_checkpoint(path) : FoundCheckpoint{.folder = find_checkpoint(path)};
  require<CheckpointError>(!checkpoint.folder.empty(), path,
                           ": holds no valid checkpoint; train it, or import it again");
  log_info("run", concat(checkpoint.folder, ": the ", checkpoint.is_best ? "best" : "newest", " checkpoint"));
  return checkpoint.folder;
}

std::vector<std::string> all_checkpoints_of(const std::string& run) {
  require<ConfigError>(fs::exists(run + "/run.yaml"), run,
                       ": is not a run directory, and --all-checkpoints needs one; name the run, not one of its steps");
  std::vector<std::string> all_checkpoints;
  for (const auto& name : step_folders(run)) all_checkpoints.push_back(run + "/" + name);
  require<ConfigError>(!all_checkpoints.empty(), run, ": holds no checkpoint; train it, or import it again");
  std::sort(all_checkpoints.begin(), all_checkpoints.end());
  return all_checkpoints;
}

LoadedRun open_on_own_device(const std::string& checkpoint) {
  auto run = open_run(checkpoint);
  move_to_own_device(run);
  return run;
}

LoadedRun open_chosen(const std::string& path, CheckpointChoice choice) {
  return read_checkpoint([&] { return chosen_checkpoint(path, choice); }, open_on_own_device);
}

LoadedRun open_intact(const std::string& checkpoint) {
  const auto folder = (fs::path(checkpoint) / "").lexically_normal().parent_path();
  if (is_step_name(folder.filename().string())) require_intact(checkpoint);
  return open_on_own_device(checkpoint);
}

}  // namespace cloze
