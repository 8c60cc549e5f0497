#include "cli/engine.h"
#include "cli/verbs.h"

namespace cloze {

void add_fill(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("fill", "fill in the blanks of a text");
  auto command = std::make_shared<FillCommand>();
  verb->add_option("run", command->run, run_help)->required();
  verb->add_option("text", command->texts, "text with [MASK] for each blank; several texts are filled in turn")
      ->required();
  verb->add_option("--top", command->top, "candidates per blank; for a generative model, maximum number of texts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_flag("--json", command->json, "print one line of JSON per text");
  verb->footer("Example:\n  cloze fill runs/first \"the mouse [MASK] the cheese\"");
  verb->callback([command, &globals] {
    for (auto& line : command->texts) {
      if (line[0] == bracket_guard) line.erase(0, 1);
      check_text(line);
      require<ConfigError>(line.find("[MASK]") != std::string::npos, "'", line,
                           "' has no [MASK] to fill; write [MASK] for each blank");
    }
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
