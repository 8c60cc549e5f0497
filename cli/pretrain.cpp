#include <filesystem>

#include "cli/engine.h"
#include "cli/verbs.h"

namespace cloze {

void add_pretrain(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("pretrain", "train a model from a config, or resume a run");
  auto file = std::make_shared<std::string>();
  auto set = std::make_shared<std::vector<std::string>>();
  auto command = std::make_shared<PretrainCommand>();
  verb->add_option("config", *file, "YAML config; optional with --resume");
  verb->add_option("--run", command->run, "run directory (default: runs/NAME, after the config file)");
  verb->add_option("--set", *set, set_help)->allow_extra_args(false);
  verb->add_flag("--resume", command->resume, "continue from the newest valid checkpoint");
  verb->add_flag("--allow-config-change", command->allow_config_change, "resume even if the config or data differ");
  verb->add_flag("--json", command->json, "print one line of JSON to standard output at the end");
  verb->footer(
      "Examples:\n  cloze pretrain configs/bert/tiny.yaml --set data.tokens=tokens --run runs/a\n"
      "  cloze pretrain --run runs/a --resume\n\n"
      "Ctrl-C saves a checkpoint and exits with code 130.");
  verb->callback([=, &globals] {
    if (file->empty() && command->resume && !command->run.empty()) *file = command->run + "/run.yaml";
    require<ConfigError>(!file->empty(), "no config given; name a YAML file, or a run to resume: --run DIR --resume");
    if (command->run.empty()) {
      const auto path = std::filesystem::path(*file);
      command->run = "runs/" + (path.parent_path().has_filename() ? path.parent_path().filename().string() + "-" : "") +
                     path.stem().string();
    }
    const bool resumes =
        command->resume && !command->allow_config_change && std::filesystem::exists(command->run + "/run.yaml");
    command->config = resumes ? read_resumed_config(*file, *set, command->run) : read_config(*file, *set);
    command->command_line = globals.command_line;
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
