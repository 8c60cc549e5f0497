#include "train/run.h"

#include <filesystem>

#include "core/file.h"

namespace cloze {

namespace fs = std::filesystem;

LoadedRun open_run(const std::string& path) {
  require<CheckpointError>(fs::exists(path), path, ": no such run directory; name one that `cloze pretrain` or `cloze import` made");
  LoadedRun run;
  const bool step = fs::exists(path + "/state.json");
  run.folder = step ? fs::path(path).lexically_normal().parent_path().string() : path;
  if (step && run.folder.empty()) run.folder = ".";
  require<CheckpointError>(fs::exists(run.folder + "/run.yaml"), path, ": is no run directory (it has no run.yaml); name one that `cloze pretrain` or `cloze import` made");
  run.checkpoint = step ? path : find_checkpoint(run.folder, fs::exists(run.folder + "/best") ? "best" : "latest");
  if (run.checkpoint.empty()) run.checkpoint = find_checkpoint(run.folder);
  require<CheckpointError>(!run.checkpoint.empty(), run.folder, ": holds no valid checkpoint; train it, or import it again");
  run.config = decode<RunConfig>(ConfigTree::load(run.folder + "/run.yaml"));
  run.has_tokenizer = fs::exists(run.folder + "/tokenizer");
  if (run.has_tokenizer) run.tokenizer = Tokenizer::open(run.folder + "/tokenizer");
  run.network = std::make_shared<Network>(run.config.model, run.config.objectives);
  load_weights(run.checkpoint + "/weights.safetensors", collect_params(*run.network));
  run.network->eval();
  return run;
}

}  // namespace cloze
