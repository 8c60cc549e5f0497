#include <filesystem>

#include "cli/engine.h"
#include "cli/verbs.h"

namespace cloze {

void add_training_verbs(CLI::App& app, Globals& globals) {
  auto file = std::make_shared<std::string>();
  auto set = std::make_shared<std::vector<std::string>>();

  auto* pretrain_verb = app.add_subcommand("pretrain", "train a model from a config");
  auto command = std::make_shared<PretrainCommand>();
  pretrain_verb->add_option("config", *file, "YAML file; with --resume it may be left out");
  pretrain_verb->add_option("--run", command->run, "run directory (default: runs/NAME of the config file)");
  pretrain_verb->add_option("--set", *set, "override: key.of.value=value; may be given again")->allow_extra_args(false);
  pretrain_verb->add_flag("--resume", command->resume, "go on from the newest valid checkpoint");
  pretrain_verb->add_flag("--allow-config-change", command->allow_config_change,
                          "resume although config or data differ");
  pretrain_verb->add_flag("--json", command->json, "one line of JSON on standard output at the end");
  pretrain_verb->footer(
      "Examples:\n  cloze pretrain configs/bert/tiny.yaml --set data.tokens=tokens --run runs/first\n  cloze pretrain "
      "--run runs/first --resume\n\n"
      "Ctrl-C saves and stops with exit code 130.");
  pretrain_verb->callback([=, &globals] {
    if (file->empty() && command->resume && !command->run.empty()) *file = command->run + "/run.yaml";
    require<ConfigError>(!file->empty(),
                         "no config was named; name a YAML file, or a run to go on with: --run DIR --resume");
    if (command->run.empty()) {
      const auto path = std::filesystem::path(*file);
      command->run = "runs/" + (path.parent_path().has_filename() ? path.parent_path().filename().string() + "-" : "") +
                     path.stem().string();
    }
    const bool goes_on =
        command->resume && !command->allow_config_change && std::filesystem::exists(command->run + "/run.yaml");
    command->config = goes_on ? read_resumed_config(*file, *set, command->run) : read_config(*file, *set);
    command->command_line = globals.command_line;
    globals.exit_code = run_engine(*command);
  });

  auto* benchmark_verb = app.add_subcommand("benchmark", "time training steps, and see where the time goes");
  auto bench = std::make_shared<BenchmarkCommand>();
  benchmark_verb->add_option("config", *file, "YAML file")->required();
  benchmark_verb
      ->add_option("--set", *set,
                   "override: key.of.value=value; data.tokens names prepared tokens, else they are made up")
      ->allow_extra_args(false);
  benchmark_verb->add_option("--steps", bench->steps, "steps to time, after three to warm up")->capture_default_str();
  benchmark_verb->add_option("--seconds", bench->seconds, "stop earlier after this long")->capture_default_str();
  benchmark_verb->add_flag("--plain", bench->plain,
                           "plain LibTorch operators instead of the fused ones, to see the gain");
  benchmark_verb->add_flag("--json", bench->json, "ends with one line of JSON");
  benchmark_verb->footer("Example:\n  cloze benchmark configs/bert/mini.yaml --steps 10");
  benchmark_verb->callback([=, &globals] {
    auto with_budget = *set;
    with_budget.emplace_back("train.budget.steps=1000000");  // a benchmark has its own end
    bench->config = read_config(*file, with_budget);
    globals.exit_code = run_engine(*bench);
  });
}

}  // namespace cloze
