#include "train/origin.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/json.h"
#include "run/moved.h"
#include "run/run_files.h"
#include "run/step_folders.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Whether a run has saved a checkpoint, which may be gone.
bool has_saved(const std::string& run) {
  std::error_code unknown;
  const auto has = [&](const char* name) { return fs::exists(fs::symlink_status(run + name, unknown)); };
  return !step_folders(run).empty() || has("/latest") || has("/summary.json");
}

/// Where a checkpoint that a run recorded is now; the recorded path where it is not found.
std::string found_checkpoint(const std::string& run, const std::string& recorded) {
  for (const auto& path : likely_paths(run, recorded))
    if (is_step_folder(path)) return path;
  return recorded;
}

/// init.from, or, for a run that was killed before its first checkpoint, the checkpoint that it was initialized from,
/// even if the run of that checkpoint has gone on since; empty without init.from.
std::string initial_checkpoint(const RunConfig& config, const PretrainOptions& options) {
  const auto& from = config.init.from;
  const auto report = options.run + "/init.json";
  if (from.empty() || !options.resume || !fs::exists(report)) return from;
  const auto origin = parse_json(read_text(report, 16 << 20));
  const auto recorded = origin.is_object() ? origin.value("from", json()) : json();
  require<CheckpointError>(recorded.is_string(), report, ": is damaged; start a new run in another folder");
  const auto checkpoint = found_checkpoint(options.run, recorded.get<std::string>());
  require<CheckpointError>(
      fs::exists(checkpoint), options.run, ": has no checkpoint of its own, and ", checkpoint,
      ", from which it was initialized, is missing; restore it, or start a new run in another folder");
  return checkpoint;
}

/// The branch point of a new branch, or of one that was killed before its first checkpoint.
std::optional<BranchPoint> branch_point(const PretrainOptions& options) {
  if (!options.resume)
    return options.branch_from.empty() ? std::nullopt : std::optional(find_branch_point(options.branch_from));
  const auto path = options.run + "/provenance.json";
  const auto recorded = fs::exists(path) ? parse_json(read_text(path, 16 << 20)) : json();
  if (!recorded.is_object() || !recorded.contains("branched_from")) return std::nullopt;
  const auto& origin = recorded["branched_from"];
  const auto checkpoint = origin.is_object() ? origin.value("checkpoint", json()) : json();
  require<CheckpointError>(checkpoint.is_string(), path, ": is damaged, so that the checkpoint which ", options.run,
                           " was branched from is not known; branch again, into another folder");
  return find_branch_point(found_checkpoint(options.run, checkpoint.get<std::string>()));
}

}  // namespace

Origin find_origin(const RunConfig& config, const PretrainOptions& options) {
  Origin origin;
  if (options.resume) origin.checkpoint = find_checkpoint(options.run);
  if (!origin.checkpoint.empty()) return origin;
  require<CheckpointError>(!options.resume || !has_saved(options.run), options.run,
                           ": has no intact checkpoint to continue from; restore one, start a new run in another "
                           "folder with --run, or remove this one and begin anew");
  origin.branch = branch_point(options);
  if (!origin.branch) origin.initial = initial_checkpoint(config, options);
  return origin;
}

}  // namespace cloze
