#include "run/run.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "objectives/generator.h"
#include "run/checkpoints/base.h"
#include "run/config/load_config.h"
#include "run/run_files.h"
#include "run/run_tokenizer.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

/// The checksum of the weights in the manifest of a checkpoint; empty where it has none.
std::string weights_checksum(const std::string& checkpoint) {
  const auto path = checkpoint + "/manifest.json";
  if (!fs::exists(path)) return "";
  return string_at(parse_json(read_text(path, 64 << 20)), "/files/weights.safetensors/xxh3");
}

void log_checkpoint(const LoadedRun& run) {
  if (log_level() != LogLevel::verbose) return;
  const auto checksum = weights_checksum(run.checkpoint);
  log_debug("run", concat(run.checkpoint, ": ", kind_of(run.config.model), ", step ", run.state.step,
                          ", weights with the XXH3 ", checksum.empty() ? "of no manifest" : checksum));
}

/// Opens the tokenizer of the run, whose config is known.
void open_tokenizer(LoadedRun& run) {
  const auto tokenizer = open_run_tokenizer(run.folder);
  run.has_tokenizer = tokenizer.has_value();
  if (!tokenizer) return;
  require_fitting(*tokenizer, backbone_of(run.config.model).vocab_size, run.folder);
  run.tokenizer = *tokenizer;
}

LoadedRun open_checkpoint(const std::string& folder, const std::string& checkpoint) {
  LoadedRun run;
  run.folder = folder;
  run.checkpoint = checkpoint;
  require<CheckpointError>(!checkpoint.empty(), folder, ": holds no valid checkpoint; train it, or import it again");
  const auto tree = load_run_config(folder + "/run.yaml");
  run.config = decode<RunConfig>(tree);
  open_tokenizer(run);
  // Earlier versions did not record it for encoder families, whose decoders were trained with the tokenizer's.
  if (!tree.find("model.eos_token_id"))
    backbone_of(run.config.model).eos_token_id = run.has_tokenizer ? run.tokenizer.special().sep : -1;
  require_made_by(folder, checkpoint, run.has_tokenizer ? std::optional(run.tokenizer) : std::nullopt);
  run.network = std::make_shared<Network>(run.config.model, run.config.objectives);
  run.state = load_state(checkpoint, nullptr);
  keep_base(run.config, *run.network);
  load_base(folder, run.state, run.config, *run.network, run.tokenizer);
  load_weights(checkpoint + "/weights.safetensors", params_in(run.state, *run.network));
  run.network->release_base();
  for (const auto& objective : run.network->objectives) {
    objective->set_step(std::max<int64_t>(run.state.step - 1, 0));  // the losses of its last step
    objective->restore(run.state.chosen);
  }
  run.network->eval();
  log_checkpoint(run);
  return run;
}

}  // namespace

LoadedRun open_run(const std::string& path) {
  require<CheckpointError>(fs::exists(path), path,
                           ": no such run directory; name one that `cloze pretrain` or `cloze import` made");
  const bool step = is_step_folder(path);
  const auto folder = step ? fs::path(located_step(path)).parent_path().string() : path;
  require<CheckpointError>(
      fs::exists(folder + "/run.yaml"), path,
      ": is not a run directory (it has no run.yaml); name one that `cloze pretrain` or `cloze import` made");
  if (step) return open_checkpoint(folder, path);
  return read_checkpoint([&] { return find_best_checkpoint(folder).folder; },
                         [&](const std::string& checkpoint) { return open_checkpoint(folder, checkpoint); });
}

void require_tokenizer(const LoadedRun& run) {
  if (!run.has_tokenizer) fail<CheckpointError>(run.folder, ": ", no_tokenizer(run.folder));
}

std::vector<std::pair<Param, Param>> generator_params(const Network& joint, const Network& standalone) {
  std::map<std::string, Param> in_joint;
  for (const auto& [name, param] : collect_params(joint)) in_joint.emplace(name, param);
  std::vector<std::pair<Param, Param>> pairs;
  for (const auto& [name, param] : collect_params(standalone)) {
    auto trained_as =
        name.starts_with("mlm.head.") ? "rtd.generator_head." + name.substr(9) : "rtd.generator." + name.substr(9);
    if (!in_joint.count(trained_as)) trained_as = name;
    pairs.emplace_back(in_joint.at(trained_as), param);
  }
  return pairs;
}

void take_generator(LoadedRun& run) {
  std::optional<Generator> generator;
  for (const auto& objective : run.config.objectives)
    if (auto made = as_kind(objective).generator(run.config.model)) generator = std::move(made);
  require<ConfigError>(generator.has_value(), run.folder,
                       ": has no generator; only a run of `kind: rtd` with replace_by: generator does");
  RunConfig config = run.config;
  config.model = generator->model;
  config.objectives = {generator->objective};
  const auto network = std::make_shared<Network>(config.model, config.objectives);
  at::NoGradGuard no_grad;
  for (const auto& [joint, standalone] : generator_params(*run.network, *network))
    standalone.value().copy_(joint.value());
  network->eval();
  run.config = config;
  run.network = network;
}

}  // namespace cloze
