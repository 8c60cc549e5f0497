#include <cstdio>
#include <filesystem>
#include <sstream>

#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/contains.h"
#include "core/log.h"
#include "core/print.h"
#include "core/text.h"
#include "models/attention/kinds.h"
#include "models/families/families.h"
#include "objectives/kinds.h"
#include "run/config/load_config.h"
#include "run/config/foreign_names.h"
#include "run/config/evaluation_protocol.h"
#include "run/moved.h"

namespace cloze {

std::string explained_values(const ConfigTree& tree, const RunConfig& config) {
  std::string text;
  for (const auto& entry : entries(config)) {
    if (!entry.leaf) continue;
    const auto explained = explain<RunConfig>(tree, entry.path);
    const std::string marker = "\n  set by   ";
    const auto at = explained.find(marker);
    const auto begin = at + marker.size();
    const auto origin = at == std::string::npos ? "" : explained.substr(begin, explained.find('\n', begin) - begin);
    text += concat(entry.path, " = ", entry.value, "  (", origin, ")\n");
  }
  return text;
}

namespace {

/// The config of a tree, whose values are logged with --verbose.
RunConfig checked_config(const ConfigTree& tree) {
  auto config = decode<RunConfig>(tree);
  validate(config);
  if (log_level() == LogLevel::verbose) log_debug("config", "the values:\n" + explained_values(tree, config));
  return config;
}

/// The config with the tokens of a run where they are now, if it names them as the run does.
RunConfig with_tokens_of(const std::string& run, RunConfig config) {
  const auto tree = ConfigTree::load(run + "/run.yaml");
  const auto is_recorded = [&](const std::string& key, const std::string& tokens) {
    const auto* recorded = tree.find(key);
    return recorded && recorded->text == tokens;
  };
  auto& data = config.data;
  if (is_recorded("data.tokens", data.tokens)) data.tokens = tokens_of_run(run, data.tokens);
  for (size_t part = 0; part < data.mixture.size(); ++part)
    if (auto& tokens = data.mixture[part].tokens; is_recorded(concat("data.mixture.", part, ".tokens"), tokens))
      tokens = mixture_tokens_of_run(run, part, tokens);
  return config;
}

}  // namespace

RunConfig read_config(const std::string& path, const std::vector<std::string>& overrides) {
  const auto file = config_file(path);
  const auto run = run_of_config(file);
  const auto config = checked_config(load_config(file, overrides));
  if (!run.empty()) return with_tokens_of(run, config);
  refuse_ignored_options(config);  // a run that has begun keeps its options
  return config;
}

RunConfig read_resumed_config(const std::string& path, const std::vector<std::string>& overrides,
                              const std::string& run) {
  return with_tokens_of(run, checked_config(load_resumed_config(config_file(path), overrides, run + "/run.yaml")));
}

namespace {

/// Calls `part` with the defaults of each model, objective and kind of attention.
template <class F>
void for_each_kind(const F& part) {
  const auto each = [&]<class... Kinds>(const std::variant<Kinds...>*) { (part(Kinds{}), ...); };
  each(static_cast<const ModelFamily*>(nullptr));
  each(static_cast<const ObjectiveVariant*>(nullptr));
  each(static_cast<const AttentionKind*>(nullptr));
}

/// The documented keys that the kinds of a section have besides those of the default one, as comments of YAML.
template <class... Kinds>
std::string other_kinds(const char* key, const std::variant<Kinds...>& standard) {
  std::string text;
  const auto add = [&](const auto& kind) {
    std::string line;
    if (kind.kind == kind_in(standard)) return;
    std::istringstream lines(document(kind));
    text += concat("\n# ", key, ": ", kind.kind, "\n");
    while (std::getline(lines, line)) text += "# " + line + "\n";
  };
  (add(Kinds{}), ...);
  return text;
}

/// Documented defaults of one part, such as `bert`, `mlm` or `optimizer`, or of the whole config.
std::string documented(const std::string& kind) {
  if (kind.empty() || kind == "run") return document(RunConfig{});
  std::string text;
  for_each_kind([&](const auto& config) {
    if (text.empty() && kind == config.kind) text = document(config);
  });
  if (!text.empty()) return text;
  if (kind == "data") return document(DataConfig{});
  if (kind == "optimizer") return document(OptimizerConfig{}) + other_kinds("kind", UpdateRule{});
  if (kind == "adaptation") return document(AdaptationSection{}) + other_kinds("kind", AdaptationConfig{});
  if (kind == "distil") return document(DistilConfig{});
  if (kind == "schedule") return document(ScheduleConfig{}) + other_kinds("shape", ScheduleShape{});
  if (kind == "train") return document(TrainConfig{});
  if (kind == "evaluation") return document(EvaluationConfig{});
  if (kind == "checkpoint") return document(CheckpointConfig{});
  std::error_code ignored;
  const bool is_run = kind_of_path(kind) == PathKind::run;
  const bool is_file = kind.ends_with(".yaml") || std::filesystem::is_regular_file(kind, ignored);
  if (const auto keys = documented_keys(kind); !keys.empty()) return keys;
  require<ConfigError>(!is_run && !is_file, "'", kind,
                       "' is not a part of a config; a whole one is printed by `cloze config --resolved ", kind,
                       is_run ? "/run.yaml`" : "`");
  refuse_declared(kind, Declared::nothing, "a part of a config");
  const auto meaning = meaning_of_unknown(RunConfig{}, kind);
  require<ConfigError>(meaning.empty(), "no config part or key is called '", kind, "'", meaning);
  const auto parts = config_parts();
  const auto near = did_you_mean(kind, parts);
  fail<ConfigError>("no config part or key is called '", kind, "'", near, near.empty() ? "; " : " ", "the parts are ",
                    listed(parts));
}

}  // namespace

std::vector<std::string> config_parts() {
  std::vector<std::string> parts{"run",      "data",  "adaptation", "distil",    "optimizer",
                                 "schedule", "train", "evaluation", "checkpoint"};
  for_each_kind([&](const auto& config) {  // performer and bigbird are models first; full attention has no keys
    if (!contains(parts, config.kind) && !document(config).empty()) parts.emplace_back(config.kind);
  });
  return parts;
}

void add_config(CLI::App& app, Globals&) {
  auto* verb = app.add_subcommand("config", "print the documented defaults of a config, of one part, or of one key");
  auto kind = std::make_shared<std::string>();
  auto markdown = std::make_shared<bool>(false);
  auto resolved = std::make_shared<std::string>();
  auto set = std::make_shared<std::vector<std::string>>();
  verb->add_option(
      "kind", *kind,
      "run, a model (bert, roberta, ...), an objective (mlm, nsp, ...), an attention (window, alternating, "
      "...), data, adaptation, distil, optimizer, schedule, train, evaluation, checkpoint; or a key, such as "
      "optimizer.learning_rate, its end, or what it begins with, such as train.budget");
  verb->add_flag("--markdown", *markdown, "print the reference of all config keys as Markdown tables");
  auto* file = verb->add_option("--resolved", *resolved, "print this YAML config with every key and preset resolved");
  verb->add_option("--set", *set, set_help)->allow_extra_args(false)->needs(file);
  verb->footer(
      "Examples:\n  cloze config bert\n  cloze config optimizer.learning_rate\n"
      "  cloze config --resolved configs/bert/tiny.yaml --set train.batch_size=8\n\n"
      "What a config has for a key, and what set it, is printed by cloze explain.");
  verb->callback([=] {
    require<ConfigError>(resolved->empty() || kind->empty(), "--resolved prints a whole config; leave '", *kind,
                         "' out");
    const auto text = *markdown           ? reference_of_keys()
                      : resolved->empty() ? documented(*kind)
                                          : to_yaml(read_config(*resolved, *set));
    print_data(text);
  });
}

}  // namespace cloze
