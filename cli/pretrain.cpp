#include <filesystem>

#include "cli/command.h"
#include "cli/paths.h"
#include "cli/processes.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "finetune/finetune_config.h"
#include "run/config/load_config.h"

namespace cloze {

namespace {

struct PretrainArguments {
  std::string file{};
  std::vector<std::string> set{};
  PretrainCommand command{};
  ProcessOptions processes{};
};

/// Throws DataError where the tokens that a run goes on with were not found.
void require_tokens(const RunConfig& config, const std::string& run) {
  const auto check = [&](const std::string& key, const std::string& tokens) {
    require<DataError>(tokens.empty() || std::filesystem::exists(tokens), run, ": its tokens, ", tokens,
                       ", are neither there nor near the run; name their folder with --set ", key, "=FOLDER");
  };
  check("data.tokens", config.data.tokens);
  for (size_t part = 0; part < config.data.mixture.size(); ++part)
    check(concat("data.mixture.", part, ".tokens"), config.data.mixture[part].tokens);
}

void branch(PretrainArguments& a) {
  require<ConfigError>(!a.command.run.empty(), "--branch-from makes a new run; name its folder with --run");
  check_training_path(a.command.run);
  refuse_task_keys(a.set);
  const auto from = run_directory_of(a.command.branch_from);
  a.command.config = read_resumed_config(from + "/run.yaml", a.set, from);
  if (!a.command.config.task.name.empty()) refuse_unused(a.set, /*goes_on=*/true);
  require_tokens(a.command.config, from);
}

/// runs/FOLDER-NAME, after the config file.
std::string default_run(const std::string& file) {
  const auto path = std::filesystem::path(file);
  const auto folder = path.parent_path().filename().string();
  return "runs/" + folder + (folder.empty() ? "" : "-") + path.stem().string();
}

/// Whether a new run may begin in a folder: it is absent or empty, or a run was killed before it wrote its config.
bool holds_a_beginning(const std::string& run) {
  std::error_code error;
  if (!std::filesystem::exists(run, error) || std::filesystem::exists(run + "/provenance.json", error)) return true;
  for (const auto& entry : std::filesystem::directory_iterator(run, error)) {
    const auto name = entry.path().filename().string();
    if (name != "lock" && !is_staged(name)) return false;
  }
  return !error;
}

void start_or_resume(PretrainArguments& a) {
  refuse_task_keys(a.set);
  auto& run = a.command.run;
  if (a.command.resume && a.file.empty()) {
    require<ConfigError>(!run.empty(), "--resume continues a run; name its folder with --run");
    check_training_path(run);
    require_run_config(run);
    const auto near =
        std::filesystem::exists(run) ? "" : near_run(run);  // a run that was killed at its beginning is meant
    const auto otherwise =
        holds_a_beginning(run) ? "; start it with a config, without --resume" : "; name the folder of a run with --run";
    require<ConfigError>(std::filesystem::exists(run + "/run.yaml"), run, ": contains no run to resume",
                         near.empty() ? otherwise : near);
    a.file = run + "/run.yaml";
  }
  require<ConfigError>(!a.file.empty(), "no config given; name a YAML file, or a run to resume: --run DIR --resume");
  if (run.empty()) run = default_run(a.file);
  const bool resumes = a.command.resume && !a.command.allow_config_change && std::filesystem::exists(run + "/run.yaml");
  a.command.config = resumes ? read_resumed_config(a.file, a.set, run) : read_config(a.file, a.set);
  if (!a.command.config.task.name.empty()) refuse_unused(a.set, /*goes_on=*/true);
  if (resumes) require_tokens(a.command.config, run);
  check_training_path(run);
  const auto& config = a.command.config;
  check_tokens_paths(config.data);
  if (!a.command.resume && !config.init.from.empty()) check_run_path(config.init.from);
  if (!a.command.resume && config.distil.is_on()) check_run_path(config.distil.teacher);
}

/// What a launcher that starts the run again goes on with: the run where it exists, whatever it was begun from.
void go_on(PretrainArguments& a) {
  const auto& run = a.command.run;
  if (!std::filesystem::exists((run.empty() ? default_run(a.file) : run) + "/run.yaml")) return;
  a.command.branch_from.clear();
  a.command.resume = true;
}

}  // namespace

void add_pretrain(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("pretrain", "train a model from a config, resume a run, or branch from one");
  constexpr const char* continuing = "Continuing a run";
  auto arguments = std::make_shared<PretrainArguments>();
  auto* command = &arguments->command;
  auto* config = verb->add_option("config", arguments->file, std::string(config_help) + "; optional with --resume");
  verb->add_option("--run", command->run, "run directory (default: runs/NAME, after the config file)");
  verb->add_option("--set", arguments->set, set_help)->allow_extra_args(false);
  auto* resume = verb->add_flag("--resume", command->resume, "continue from the newest valid checkpoint");
  resume->group(continuing);
  verb->add_flag("--allow-config-change", command->allow_config_change, "resume even if the config or data differ")
      ->group(continuing);
  verb->add_option(
          "--branch-from", command->branch_from,
          "continue a checkpoint of another run, RUN or RUN/step-N, as a new run with another budget or schedule")
      ->excludes(config)
      ->excludes(resume)
      ->group(continuing);
  verb->add_option("--hook", command->hook,
                   "shell command that is told what happens, each event as JSON on its standard input: started, "
                   "evaluated, checkpoint, diverged, finished, failed")
      ->envname("CLOZE_HOOK")
      ->allow_extra_args(false);
  verb->add_flag("--json", command->json, "print one line of JSON to standard output at the end");
  add_process_options(*verb, arguments->processes);
  verb->footer(
      "Examples:\n  cloze pretrain bert/tiny --set data.tokens=tokens --run runs/a\n"
      "  cloze pretrain --run runs/a --resume\n"
      "  cloze pretrain --branch-from runs/a --run runs/b --set train.budget.steps=2500\n\n"
      "Ctrl-C saves a checkpoint and exits with code 130. With\n"
      "--set train.on_divergence=stop a run that diverges exits with code 3.");
  verb->callback([arguments, &globals] {
    globals.exit_code = train_by_processes(arguments->processes, globals, [&](const Trainer& trainer) {
      auto& chosen = arguments->command;
      if (trainer.goes_on) go_on(*arguments);
      if (chosen.branch_from.empty())
        start_or_resume(*arguments);
      else
        branch(*arguments);
      chosen.command_line = globals.command_line;
      return trainer.train(chosen);
    });
  });
}

}  // namespace cloze
