#include <cstdio>

#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/print.h"
#include "core/text.h"
#include "run/config/foreign_names.h"
#include "run/config/load_config.h"

namespace cloze {

namespace {

/// The whole key of one that is given by its end. Throws ConfigError for an end of several keys, and for none.
std::string whole_key(const RunConfig& config, const std::string& key) {
  const auto all = entries(config);
  std::vector<std::string> paths;
  for (const auto& entry : all) {
    if (entry.path == key) return key;
    if (entry.path.ends_with("." + key)) paths.push_back(entry.path);
  }
  if (paths.size() == 1) return paths[0];
  require<ConfigError>(paths.empty(), "'", key, "' is the end of several keys; name one of ", listed(paths));
  const auto meaning = meaning_of_unknown(config, key);
  require<ConfigError>(meaning.empty(), "unknown key '", key, "'", meaning);
  return key;  // refused by explain, with the nearest
}

}  // namespace

void add_explain(CLI::App& app, Globals&) {
  auto* verb = app.add_subcommand("explain", "show where the values of a config come from");
  auto file = std::make_shared<std::string>();
  auto key = std::make_shared<std::string>();
  auto set = std::make_shared<std::vector<std::string>>();
  verb->add_option("config", *file, "YAML config, or a key alone, as in cloze config KEY")->required();
  verb->add_option("key", *key,
                   "config key, such as optimizer.learning_rate, or its end: learning_rate (default: all keys)");
  verb->add_option("--set", *set, set_help)->allow_extra_args(false);
  verb->footer("Example:\n  cloze explain configs/bert/tiny.yaml optimizer.learning_rate");
  verb->callback([file, key, set] {
    if (kind_of_path(*file) == PathKind::absent)
      if (const auto keys = documented_keys(*file); !keys.empty()) return print_text(keys);
    const auto tree = load_config(config_file(*file), *set);
    const auto config = decode<RunConfig>(tree);
    const auto text = key->empty() ? explained_values(tree, config) : explain<RunConfig>(tree, whole_key(config, *key));
    print_text(text);
  });
}

}  // namespace cloze
