#include <cstdio>

#include "cli/engine.h"
#include "cli/verbs.h"
#include "run/run_config.h"

namespace cloze {

RunConfig read_config(const std::string& path, const std::vector<std::string>& overrides) {
  auto config = decode<RunConfig>(load_config(path, overrides));
  validate(config);
  return config;
}

RunConfig read_resumed_config(const std::string& path, const std::vector<std::string>& overrides,
                              const std::string& run) {
  auto config = decode<RunConfig>(load_resumed_config(path, overrides, run + "/run.yaml"));
  validate(config);
  return config;
}

namespace {

/// Documented defaults of a part: `bert`, `mlm`, `optimizer`, or of everything.
std::string documented(const std::string& kind) {
  if (kind.empty() || kind == "run") return document(RunConfig{});
  std::vector<std::string> kinds{"run", "data", "optimizer", "schedule", "train", "evaluation", "checkpoint"};
  std::string found;
  const auto part = [&](const auto& config) {
    if (found.empty() && kind == config.kind) found = document(config);
    kinds.emplace_back(config.kind);
  };
  const auto each = [&]<class... Kinds>(const std::variant<Kinds...>*) { (part(Kinds{}), ...); };
  each(static_cast<const ModelConfig*>(nullptr)), each(static_cast<const ObjectiveConfig*>(nullptr));
  part(WindowAttention{}),
      part(LinformerAttention{});  // those of performer and bigbird stand with the models of that name
  if (!found.empty()) return found;
  if (kind == "data") return document(DataConfig{});
  if (kind == "optimizer") return document(OptimizerConfig{});
  if (kind == "schedule") return document(ScheduleConfig{});
  if (kind == "train") return document(TrainConfig{});
  if (kind == "evaluation") return document(EvaluationConfig{});
  if (kind == "checkpoint") return document(CheckpointConfig{});
  std::string list;
  for (const auto& k : kinds) list += (list.empty() ? "" : ", ") + k;
  fail<ConfigError>("no config part is called '", kind, "'", did_you_mean(kind, kinds), "; the parts are ", list);
}

}  // namespace

void add_config_verbs(CLI::App& app, Globals& globals) {
  auto* config = app.add_subcommand("config", "documented defaults of a config, or of one part of it");
  auto kind = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  config->add_option("kind", *kind,
                     "run, a model (bert, roberta, ...), an objective (mlm, nsp, ...), data, optimizer, schedule, "
                     "train, evaluation, checkpoint");
  config->add_flag("--markdown", *markdown, "the reference of every key of every kind, as Markdown tables");
  config->footer("Example:\n  cloze config bert");
  config->callback(
      [kind, markdown] { std::printf("%s", (*markdown ? reference_of_keys() : documented(*kind)).c_str()); });

  auto* explained = app.add_subcommand("explain", "a value of a config, and where it comes from");
  auto file = std::make_shared<std::string>(), key = std::make_shared<std::string>();
  auto set = std::make_shared<std::vector<std::string>>();
  explained->add_option("config", *file, "YAML file")->required();
  explained->add_option("key", *key, "for instance optimizer.learning_rate")->required();
  explained->add_option("--set", *set, "override: key.of.value=value")->allow_extra_args(false);
  explained->footer("Example:\n  cloze explain configs/bert/tiny.yaml optimizer.learning_rate");
  explained->callback(
      [file, key, set] { std::printf("%s", explain<RunConfig>(load_config(*file, *set), *key).c_str()); });

  auto* describe_verb =
      app.add_subcommand("describe", "layers, parameters, FLOPs and memory of a config, before any run");
  auto described = std::make_shared<DescribeCommand>();
  describe_verb->add_option("config", *file, "YAML file")->required();
  describe_verb->add_option("--set", *set, "override: key.of.value=value")->allow_extra_args(false);
  describe_verb->add_flag("--json", described->json, "one line of JSON on standard output");
  describe_verb->footer("Example:\n  cloze describe configs/bert/base.yaml");
  describe_verb->callback([file, set, described, &globals] {
    described->config = read_config(*file, *set);
    globals.exit_code = run_engine(*described);
  });
}

}  // namespace cloze
