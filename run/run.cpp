#include "run/run.h"

#include <filesystem>

#include "core/file.h"
#include "objectives/objective.h"
#include "run/load_config.h"

namespace cloze {

namespace fs = std::filesystem;

LoadedRun open_run(const std::string& path) {
  require<CheckpointError>(fs::exists(path), path,
                           ": no such run directory; name one that `cloze pretrain` or `cloze import` made");
  LoadedRun run;
  const bool step = fs::exists(path + "/state.json");
  run.folder = step ? fs::path(path).lexically_normal().parent_path().string() : path;
  if (step && run.folder.empty()) run.folder = ".";
  require<CheckpointError>(
      fs::exists(run.folder + "/run.yaml"), path,
      ": is not a run directory (it has no run.yaml); name one that `cloze pretrain` or `cloze import` made");
  run.checkpoint = step ? path : find_checkpoint(run.folder, fs::exists(run.folder + "/best") ? "best" : "latest");
  if (run.checkpoint.empty()) run.checkpoint = find_checkpoint(run.folder);
  require<CheckpointError>(!run.checkpoint.empty(), run.folder,
                           ": holds no valid checkpoint; train it, or import it again");
  const auto tree = load_run_config(run.folder + "/run.yaml");
  run.config = decode<RunConfig>(tree);
  run.has_tokenizer = fs::exists(run.folder + "/tokenizer");
  if (run.has_tokenizer) run.tokenizer = Tokenizer::open(run.folder + "/tokenizer");
  // Earlier versions did not record it for encoder families, whose decoders were trained with the tokenizer's.
  if (!tree.find("model.eos_token_id"))
    backbone_of(run.config.model).eos_token_id = run.has_tokenizer ? run.tokenizer.special().sep : -1;
  run.network = std::make_shared<Network>(run.config.model, run.config.objectives);
  load_weights(run.checkpoint + "/weights.safetensors", collect_params(*run.network));
  const int64_t steps_done = load_state(run.checkpoint, nullptr).step;
  for (const auto& objective : run.network->objectives)
    objective->set_step(std::max<int64_t>(steps_done - 1, 0));  // the losses of its last step
  run.network->eval();
  return run;
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
  const RtdConfig* rtd = nullptr;
  for (const auto& o : run.config.objectives)
    if (const auto* found = std::get_if<RtdConfig>(&o)) rtd = found;
  require<ConfigError>(rtd && rtd->replace_by == ReplaceBy::generator, run.folder,
                       ": has no generator; only a run of `kind: rtd` with replace_by: generator does");
  RunConfig config = run.config;
  config.model = generator_of(*rtd, run.config.model);
  config.objectives = {rtd->mlm};
  const auto network = std::make_shared<Network>(config.model, config.objectives);
  at::NoGradGuard no_grad;
  for (const auto& [joint, standalone] : generator_params(*run.network, *network))
    standalone.value().copy_(joint.value());
  network->eval();
  run.config = config;
  run.network = network;
}

}  // namespace cloze
