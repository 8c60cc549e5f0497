#include <cstdio>

#include "cli/verbs.h"
#include "run/load_config.h"

namespace cloze {

void add_explain(CLI::App& app, Globals&) {
  auto* verb = app.add_subcommand("explain", "show where a value of a config comes from");
  auto file = std::make_shared<std::string>(), key = std::make_shared<std::string>();
  auto set = std::make_shared<std::vector<std::string>>();
  verb->add_option("config", *file, "YAML config")->required();
  verb->add_option("key", *key, "config key, such as optimizer.learning_rate")->required();
  verb->add_option("--set", *set, set_help)->allow_extra_args(false);
  verb->footer("Example:\n  cloze explain configs/bert/tiny.yaml optimizer.learning_rate");
  verb->callback([file, key, set] { std::printf("%s", explain<RunConfig>(load_config(*file, *set), *key).c_str()); });
}

}  // namespace cloze
