#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"

namespace cloze {

void add_benchmark(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("benchmark", "time training steps, with a breakdown by phase");
  auto file = std::make_shared<std::string>();
  auto set = std::make_shared<std::vector<std::string>>();
  auto command = std::make_shared<BenchmarkCommand>();
  verb->add_option("config", *file, config_help)->required();
  verb->add_option("--set", *set,
                   "override a config value: KEY=VALUE (repeatable); without data.tokens, tokens are synthetic")
      ->allow_extra_args(false);
  constexpr const char* timing = "Timing";
  verb->add_option("--steps", command->steps, "steps to time, after three to warm up")
      ->capture_default_str()
      ->group(timing);
  verb->add_option("--seconds", command->seconds, "time limit")->capture_default_str()->group(timing);
  verb->add_flag("--plain", command->plain, "use plain LibTorch operators instead of the fused ones")->group(timing);
  verb->add_flag("--steps-only", command->steps_only, "time steps alone, not the rates of GEMM and collation")
      ->group(timing);
  verb->add_flag("--json", command->json, "end with one line of JSON");
  verb->footer("Example:\n  cloze benchmark configs/bert/mini.yaml --steps 10");
  verb->callback([=, &globals] {
    auto with_budget = *set;
    with_budget.emplace_back("train.budget.steps=1000000");  // a benchmark has its own end
    command->config = read_config(*file, with_budget);
    check_tokens_paths(command->config.data);
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
