#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"

namespace cloze {

void add_score(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("score", "log-probabilities of texts under a run");
  auto command = std::make_shared<ScoreCommand>();
  verb->add_option("run", command->run, run_help)->required();
  verb->add_option("file", command->file,
                   "texts, one a line: plain, CONTEXT<tab>COMPLETION, or JSON lines; - is standard input")
      ->required();
  add_checkpoint_option(*verb, command->checkpoint);
  add_choice<ScoringForm>(*verb, "--as", command->form, "how texts are scored (default: as the run was trained for)");
  add_choice<Normalisation>(*verb, "--normalise", command->normalise,
                            "what a text's score is divided by in the table, and with --json in `normalised`");
  verb->add_option("--stride", command->stride,
                   "score texts longer than the model in windows, each of which scores so many tokens (default: such "
                   "texts are refused)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 30));
  add_choice<Precision>(
      *verb, "--precision", command->precision,
      "bf16: states in bf16 where the processor has units for it, about twice as fast; logits stay fp32");
  verb->add_option("--cache", command->cache, "folder in which scores are kept, by weights and text");
  verb->add_flag("--tokens", command->tokens, "with --json: the log-probability of each token");
  verb->add_flag("--json", command->json, "print one line of JSON per text");
  verb->footer(
      "Examples:\n  cloze score runs/first sentences.txt\n"
      "  cloze score runs/gpt2 pairs.tsv --json --tokens\n"
      "  cloze score runs/first chapter.txt --stride 64\n\n"
      "JSON lines have `text`; `context` and `completion`, of which the completion is\n"
      "scored; or `left`, `scored` and `right`. Scores are sums of log-probabilities in\n"
      "nats.");
  verb->callback([command, &globals] {
    check_run_first(command->run, {command->file});
    check_texts_file(command->file, "cloze score " + command->run + " -");
    require<ConfigError>(!command->tokens || command->json, "--tokens is printed with --json only; add --json");
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
