#include "cli/command.h"
#include "cli/verbs.h"

namespace cloze {

void add_describe(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("describe", "show layers, parameters, FLOPs and memory of a config");
  auto file = std::make_shared<std::string>();
  auto set = std::make_shared<std::vector<std::string>>();
  auto command = std::make_shared<DescribeCommand>();
  verb->add_option("config", *file, config_help)->required();
  verb->add_option("--set", *set, set_help)->allow_extra_args(false);
  verb->add_flag("--json", command->json, json_help);
  verb->footer("Example:\n  cloze describe configs/bert/base.yaml");
  verb->callback([file, set, command, &globals] {
    command->config = read_config(*file, *set);
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
