#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"

namespace cloze {

void add_view(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("view", "draw a page of what a run does with a text");
  auto command = std::make_shared<ViewCommand>();
  verb->add_option("run", command->run, run_help)->required();
  verb->add_option("file", command->file,
                   "texts, one a line: plain, CONTEXT<tab>COMPLETION, or JSON lines; - is standard input")
      ->required();
  add_checkpoint_option(*verb, command->checkpoint);
  verb->add_option("--sentence", command->sentence, "text whose attention is shown (default: the first of the file)");
  verb->add_option("--out", command->out, "the page, an HTML file")->required();
  verb->add_flag("--json", command->json, json_help);
  verb->footer(
      "Example:\n  cloze view runs/first sentences.txt --out view.html\n\n"
      "The page shows the first texts with the loss of every token, losses by position\n"
      "and by frequency, calibration, sentences by their principal components, and the\n"
      "attention of every head. It needs nothing outside it. Lines are read as `cloze\n"
      "score` reads them; a context and its completion are one text.");
  verb->callback([command, &globals] {
    check_run_first(command->run, {command->file});
    check_texts_file(command->file, "cloze view " + command->run + " - --out " + command->out);
    check_output_file("--out", command->out, {command->file});
    if (!command->sentence.empty()) check_text(command->sentence);
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
