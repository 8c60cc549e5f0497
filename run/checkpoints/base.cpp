#include "run/checkpoints/base.h"

#include <algorithm>
#include <filesystem>

#include "core/contains.h"
#include "optimizers/optimizer.h"
#include "run/checkpoints/checksums.h"
#include "run/folder.h"
#include "run/moved.h"
#include "run/run_files.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// Names without what is said of them: `NAME (shape ...)`.
std::vector<std::string> names_alone(std::vector<std::string> notes) {
  for (auto& note : notes) note = note.substr(0, note.find(' '));
  return notes;
}

}  // namespace

std::string located_checkpoint(const std::string& run, const BaseRecord& record, const char* use, const char* remedy) {
  const auto is_it = [&](const std::string& path) {
    return is_step_folder(path) && (record.weights.empty() || weights_fingerprint(path) == record.weights);
  };
  const auto paths = likely_paths(run, record.checkpoint);
  for (const auto& path : paths)
    if (is_it(path)) return path;
  for (const auto& path : paths) {
    const auto folder = fs::path(path).parent_path().string();
    if (!fs::is_directory(folder)) continue;
    for (const auto& name : step_folders(folder))
      if (is_it(folder + "/" + name)) return folder + "/" + name;
  }
  fail<CheckpointError>(run, ": ", use, " ", record.checkpoint, ", which ",
                        std::ranges::any_of(paths, is_step_folder) ? "has others by now" : "is not there any more",
                        "; restore it (its weights have the XXH3 ", record.weights, ")", remedy);
}

void keep_base(const RunConfig& config, Network& network) {
  network.adapt(config.adaptation.kind);
  if (config.init.probe) network.freeze_backbone();
  if (config.freeze.layers >= 0) freeze_layers(collect_params(network), config.freeze.layers);
}

BaseRecord recorded_base(const InitReport& report, const Network& network) {
  const auto base = base_params(collect_params(network));
  const auto drawn = names_alone(report.fresh), partly = names_alone(report.partly);
  for (const auto& [name, param] : base)
    require<ConfigError>(!contains(drawn, name) && !contains(partly, name), name, " is not trained, and ", report.from,
                         " has ", contains(partly, name) ? "only a part of it" : "none that fits",
                         "; train it (init.probe, freeze.layers, adaptation), or begin with another run");
  return base.empty() ? BaseRecord{} : BaseRecord{.checkpoint = report.from, .weights = report.weights};
}

std::vector<NamedParam> params_in(const TrainState& state, const Network& network) {
  return state.base.checkpoint.empty() ? collect_params(network) : own_params(collect_params(network));
}

void load_base(const std::string& run, const TrainState& state, const RunConfig& config, Network& network,
               const Tokenizer& tokenizer) {
  if (state.base.checkpoint.empty()) return;
  const auto checkpoint =
      located_checkpoint(run, state.base, "keeps weights of", ": the run itself has only what was trained beside them");
  init_from(checkpoint, network, tokenizer, config.init, config.objectives);
}

}  // namespace cloze
