#include <filesystem>

#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"
#include "data/reading/text_lines.h"

namespace cloze {

namespace {

/// Whether an argument is a file of items: one that is there, standard input, or a name without spaces that has the
/// form of a file's.
bool names_items(const std::string& argument) {
  std::error_code ignored;
  if (argument == "-" || std::filesystem::exists(argument, ignored)) return true;
  const bool has_spaces = argument.find_first_of(" \t\n") != argument.npos;
  return !has_spaces && argument.find_first_of("./") != argument.npos && argument.back() != '.';
}

}  // namespace

void add_attribute(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("attribute", "show which words the answers of a fine-tuned run rest on");
  auto command = std::make_shared<AttributeCommand>();
  auto what = std::make_shared<std::string>();
  verb->add_option("run", command->run, run_help)->required();
  verb->add_option("text", *what,
                   "a text, with a tab before the second one of a pair; or a file of items with the columns of the "
                   "run's task, - for standard input")
      ->required();
  add_checkpoint_option(*verb, command->checkpoint);
  add_choice<AttributionMethod>(*verb, "--method", command->method, "how a score is shared out among words");
  verb->add_option("--label", command->label,
                   "label whose score is explained, or the number of a candidate (default: what is predicted)");
  add_choice<BaselineToken>(*verb, "--baseline", command->baseline,
                            "what stands in place of words that are taken away");
  verb->add_option("--points", command->points, "of integrated gradients")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  verb->add_option("--samples", command->samples,
                   "shap: orders of the words, each with its reverse (default: 16); lime: texts (default: 1000)")
      ->check(CLI::Range(1, 1000000));
  verb->add_option("--seed", command->seed, "of samples, and of words in random order")->capture_default_str();
  verb->add_option("--task", command->task,
                   "the task of an imported network that came with the head of one, as of `cloze predict`");
  verb->add_option("--out", command->out, "write a page, an HTML file, in place of text");
  verb->add_flag("--skip-bad", command->skip_bad, skip_bad_help);
  verb->add_flag("--json", command->json, "print a line of JSON for each score, and one for all");
  verb->footer(
      "Examples:\n  cloze attribute runs/wiki-sst2 \"the film is a delight\"\n"
      "  cloze attribute runs/wiki-sst2 dev.tsv --method shap --out words.html\n"
      "  cloze attribute runs/wiki-sst2 dev.tsv --label negative --json\n\n"
      "Explained are the logit of a label or a candidate, a value, the logits of tags but\n"
      "O, or those of the first and the last token of an answer.");
  verb->callback([command, what, &globals] {
    check_run_first(command->run, {*what});
    if (const auto name = command->task; !name.empty()) {
      command->task = task_file(name);
      require<ConfigError>(!command->task.empty(), "--task ", name, ": no such file, and no ready task");
    }
    const bool is_blank_text = is_blank(*what);
    require<ConfigError>(!is_blank_text, "the text is empty; write some words, or name a file of items");
    (names_items(*what) ? command->file : command->text) = *what;
    if (!command->file.empty()) check_items_path(command->file);
    if (!command->text.empty()) check_text(command->text);
    if (!command->out.empty()) check_output_file("--out", command->out, {command->file});
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
