#include <filesystem>

#include "cli/engine/parts.h"
#include "core/log.h"
#include "run/run.h"

namespace cloze {

namespace fs = std::filesystem;

std::string chosen_checkpoint(const std::string& path, CheckpointChoice choice) {
  const bool is_run = fs::exists(path + "/run.yaml");
  if (fs::exists(path + "/state.json")) require_whole(path);
  if (!is_run) return path;  // a step folder, or refused by who opens it
  const auto best = choice == CheckpointChoice::best && fs::exists(path + "/best") ? find_checkpoint(path, "best") : "";
  const auto found = best.empty() ? find_checkpoint(path) : best;
  if (found.empty()) return path;
  log_info("run", words(found, ": the ", best.empty() ? "newest" : "best", " checkpoint"));
  return found;
}

}  // namespace cloze
