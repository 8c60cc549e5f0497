#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/error.h"

namespace cloze {

namespace {

/// Refuses what several configs cannot have, and files that are not to be written, before anything is read.
void check_outputs(const InspectCommand& command) {
  constexpr size_t most = 4;
  require<ConfigError>(command.names.size() <= most, command.names.size(),
                       " configs are too many for a page, which shows ", most, " side by side; name fewer");
  if (command.names.size() > 1) {
    require<ConfigError>(!command.page.empty(), command.names.size(),
                         " configs stand side by side on a page only; add --page FILE.html, or name one config");
    require<ConfigError>(!command.json && command.picture.empty(), command.json ? "--json" : "--picture",
                         " is of one config, and ", command.names.size(),
                         " are given; leave it out, or name one config");
  }
  if (!command.picture.empty()) check_output_file("--picture", command.picture, command.names);
  if (!command.page.empty()) check_output_file("--page", command.page, command.names);
}

}  // namespace

void add_inspect(CLI::App& app, Globals& globals) {
  auto* inspect = app.add_subcommand("inspect", "show what a config or a task does to text");
  inspect->require_subcommand(1);
  inspect->footer("Example:\n  cloze inspect objective configs/bert/tiny.yaml --set data.tokens=tokens");
  auto* objective =
      inspect->add_subcommand("objective", "show training examples, and test their statistics; exit 1 if a test fails");
  auto set = std::make_shared<std::vector<std::string>>();
  auto command = std::make_shared<InspectCommand>();
  objective->add_option("config", command->names, std::string(config_help) + "; with --page up to four")->required();
  objective->add_option("--set", *set, set_help)->allow_extra_args(false);
  objective->add_option("--examples", command->examples, "sequences to show")->capture_default_str();
  objective->add_option("--sequences", command->sequences, "sequences to count over")->capture_default_str();
  objective->add_option("--page", command->page, "draw the rows on this .html page, several configs side by side");
  objective->add_option("--picture", command->picture, "plot histograms of span lengths to this .svg file");
  objective->add_flag("--json", command->json, json_help);
  objective->footer(
      "Examples:\n  cloze inspect objective configs/bert/tiny.yaml --set data.tokens=tokens \\\n"
      "    --picture lengths.svg\n"
      "  cloze inspect objective configs/bert/tiny.yaml configs/gpt2/tiny.yaml \\\n"
      "    configs/t5/tiny.yaml --set data.tokens=tokens --page rows.html");
  objective->callback([=, &globals] {
    check_outputs(*command);
    for (const auto& name : command->names) {
      const auto& config = command->configs.emplace_back(read_config(name, *set));
      require<ConfigError>(config.task.name.empty(), name, ": is of a run that is fine-tuned on ", config.task.name,
                           ", whose rows `cloze inspect task` shows");
      check_tokens_paths(config.data);
    }
    globals.exit_code = run_engine(*command);
  });
  add_inspect_task(*inspect);
}

}  // namespace cloze
