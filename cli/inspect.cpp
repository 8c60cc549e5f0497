#include "cli/engine.h"
#include "cli/paths.h"
#include "cli/verbs.h"

namespace cloze {

void add_inspect(CLI::App& app, Globals& globals) {
  auto* inspect = app.add_subcommand("inspect", "show what a config does to text");
  inspect->require_subcommand(1);
  inspect->footer("Example:\n  cloze inspect objective configs/bert/tiny.yaml --set data.tokens=tokens");
  auto* objective =
      inspect->add_subcommand("objective", "show training examples, and test their statistics; exit 1 if a test fails");
  auto file = std::make_shared<std::string>();
  auto set = std::make_shared<std::vector<std::string>>();
  auto command = std::make_shared<InspectCommand>();
  objective->add_option("config", *file, config_help)->required();
  objective->add_option("--set", *set, set_help)->allow_extra_args(false);
  objective->add_option("--examples", command->examples, "sequences to show")->capture_default_str();
  objective->add_option("--sequences", command->sequences, "sequences to count over")->capture_default_str();
  objective->add_option("--picture", command->picture, "plot histograms of span lengths to this .svg file");
  objective->add_flag("--json", command->json, json_help);
  objective->footer(
      "Example:\n  cloze inspect objective configs/bert/tiny.yaml --set data.tokens=tokens \\\n"
      "    --picture lengths.svg");
  objective->callback([=, &globals] {
    command->config = read_config(*file, *set);
    if (const auto& tokens = command->config.data.tokens; !tokens.empty()) check_tokens_path(tokens);
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
