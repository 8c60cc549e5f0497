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
  auto* processes = verb->add_option("--processes", command->processes,
                                     "what a step costs where so many processes make it, each with a GPU of its own")
                        ->check(CLI::Range(1, 1 << 20));
  verb->add_option("--hosts", command->hosts, "the machines of these processes, with as many each (default: 1)")
      ->check(CLI::Range(1, 1 << 20))
      ->needs(processes);
  verb->add_flag("--json", command->json, json_help);
  verb->footer(
      "Examples:\n  cloze describe configs/bert/base.yaml\n"
      "  cloze describe bert/base --set train.batch_size=4096 --processes 64 --hosts 8");
  verb->callback([file, set, command, &globals] {
    command->config = read_config(*file, *set);
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
