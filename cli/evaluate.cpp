#include "cli/engine.h"
#include "cli/near_names.h"
#include "cli/verbs.h"

namespace cloze {

namespace {

/// The files to score, and how they are read; returns --text.
CLI::Option* add_texts(CLI::App& verb, EvaluateCommand& command) {
  constexpr const char* group = "Texts";
  auto* text = verb.add_option("--text", command.text,
                               "files to evaluate on, or - for standard input; tokenized with the run's tokenizer");
  text->group(group);
  verb.add_option("--target", command.target, "pairs: target files, aligned line by line with --text")
      ->needs(text)
      ->group(group);
  verb.add_option("--format", command.format, "format of --text: auto, text, lines, jsonl, wiki, pairs")
      ->capture_default_str()
      ->group(group);
  verb.add_option("--field", command.field, "jsonl: key of the text in --text")
      ->needs(text)
      ->capture_default_str()
      ->group(group);
  verb.add_option("--columns", command.columns,
                  "pairs: NAME,NAME, the source and target columns by the header line of each file of --text; in JSON "
                  "lines, the two keys")
      ->needs(text)
      ->group(group);
  return text;
}

}  // namespace

void add_evaluate(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("evaluate", "compute held-out loss and accuracy of one run or several");
  auto command = std::make_shared<EvaluateCommand>();
  verb->add_option("run", command->runs, "run directories, or step folders of them")->required();
  add_checkpoint_option(*verb, command->checkpoint);
  verb->add_option("--objective", command->objectives,
                   "objective to score by, KIND[:SHARE][,KEY=VALUE]...: mlm:0.15, mlm,unit=word, clm (repeatable; "
                   "default: the run's evaluation.objectives)")
      ->allow_extra_args(false);
  verb->add_option("--set", command->set, "override an evaluation setting: evaluation.KEY=VALUE (repeatable)")
      ->allow_extra_args(false);
  auto* text = add_texts(*verb, *command);
  verb->add_option("--tokens", command->tokens, "prepared folder, scored on its held-out split (default: the run's)")
      ->excludes(text);
  verb->add_option("--sequences", command->sequences,
                   "number of sequences to score (default: the run's evaluation.sequences)");
  auto* generate = verb->add_flag("--generate", command->generate,
                                  "pairs: generate targets for the held-out sources, and print BLEU, chrF, ROUGE and "
                                  "exact match");
  const auto before = verb->get_options().size();
  add_search_options(*verb, command->search, command->batch_size);
  for (size_t i = before; i < verb->get_options().size(); ++i)
    if (auto* option = verb->get_options()[i]; !option->check_name("--batch-size"))
      option->needs(generate);  // losses are computed in batches too
  verb->add_flag("--json", command->json, json_help);
  verb->footer(
      "Examples:\n  cloze evaluate runs/first --text chapter.txt\n"
      "  cloze evaluate runs/a runs/b --objective mlm:0.15 --objective mlm:0.4\n"
      "  cloze evaluate runs/en-de --generate --num-beams 4\n"
      "  cloze evaluate runs/en-de --text test.en --target test.de --generate\n\n"
      "Several runs are scored on the same text with the same masks, however they were\n"
      "trained. Without --text, sources and references are decoded from prepared\n"
      "tokens, unknown tokens included.");
  verb->callback([command, verb, &globals] {
    for (const auto& run : command->runs) check_run_path(run);
    check_search_options(*verb, command->search);
    require<ConfigError>((command->sequences > 0 || verb->count("--sequences") == 0) && command->batch_size > 0,
                         "--sequences and --batch-size must be at least 1");
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
