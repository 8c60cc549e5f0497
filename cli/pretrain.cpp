#include <filesystem>

#include "cli/engine.h"
#include "cli/near_names.h"
#include "cli/verbs.h"
#include "run/load_config.h"

namespace cloze {

void add_pretrain(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("pretrain", "train a model from a config, resume a run, or branch from one");
  auto file = std::make_shared<std::string>();
  auto set = std::make_shared<std::vector<std::string>>();
  auto command = std::make_shared<PretrainCommand>();
  auto* config = verb->add_option("config", *file, "YAML config; optional with --resume");
  verb->add_option("--run", command->run, "run directory (default: runs/NAME, after the config file)");
  verb->add_option("--set", *set, set_help)->allow_extra_args(false);
  auto* resume = verb->add_flag("--resume", command->resume, "continue from the newest valid checkpoint");
  verb->add_flag("--allow-config-change", command->allow_config_change, "resume even if the config or data differ");
  verb->add_option(
          "--branch-from", command->branch_from,
          "continue a checkpoint of another run, RUN or RUN/step-N, as a new run with another budget or schedule")
      ->excludes(config)
      ->excludes(resume);
  verb->add_flag("--json", command->json, "print one line of JSON to standard output at the end");
  verb->footer(
      "Examples:\n  cloze pretrain configs/bert/tiny.yaml --set data.tokens=tokens --run runs/a\n"
      "  cloze pretrain --run runs/a --resume\n"
      "  cloze pretrain --branch-from runs/a --run runs/b --set train.budget.steps=2500\n\n"
      "Ctrl-C saves a checkpoint and exits with code 130.");
  verb->callback([=, &globals] {
    if (!command->branch_from.empty()) {
      require<ConfigError>(!command->run.empty(), "--branch-from makes a new run; name its folder with --run");
      const auto from = run_directory_of(command->branch_from);
      command->config = read_resumed_config(from + "/run.yaml", *set, from);
      command->command_line = globals.command_line;
      globals.exit_code = run_engine(*command);
      return;
    }
    if (command->resume && file->empty()) {
      require<ConfigError>(!command->run.empty(), "--resume continues a run; name its folder with --run");
      const auto near = near_run(command->run);
      require<ConfigError>(std::filesystem::exists(command->run + "/run.yaml"), command->run,
                           ": contains no run to resume",
                           near.empty() ? "; start it with a config, without --resume" : near);
    }
    if (file->empty() && command->resume) *file = command->run + "/run.yaml";
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
