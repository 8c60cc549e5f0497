#include <filesystem>

#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"

namespace cloze {

void add_predict(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("predict", "predict labels, values, tags or answers with a fine-tuned run");
  auto command = std::make_shared<PredictCommand>();
  verb->add_option("run", command->run, run_help)->required();
  verb->add_option("file", command->file,
                   "items, with the columns of the run's task; labels are not needed; - is standard input")
      ->required();
  add_checkpoint_option(*verb, command->checkpoint);
  verb->add_option(
      "--out", command->out,
      "write predictions to this file: .jsonl, as --json prints them; .tsv and .csv, the lines of such a table "
      "with one cell more, or item and prediction; .conll, words with tags; .json, answers as SQuAD has "
      "them");
  verb->add_option("--task", command->task,
                   "the task of an imported network that came with the head of one: which columns items have, and how "
                   "files write its labels");
  const auto* uncertainty = "Uncertainty";
  verb->add_option("--samples", command->samples,
                   "passes with dropout, whose predictions are averaged; 0 = one pass without it")
      ->check(CLI::Range(0, 10000))
      ->group(uncertainty);
  verb->add_option("--seed", command->seed, "of the dropout of --samples")->group(uncertainty);
  verb->add_option("--ensemble", command->ensemble, "further runs of the task, whose predictions are averaged too")
      ->group(uncertainty);
  verb->add_flag("--calibrated", command->calibrated, "probabilities are those at the temperature of the valid part")
      ->group(uncertainty);
  verb->add_option("--coverage", command->coverage,
                   "with --json a set of labels that holds the right one in so many cases, 0.9, by the valid part")
      ->check(CLI::Range(0.0, 0.9999))
      ->group(uncertainty);
  verb->add_flag("--skip-bad", command->skip_bad, skip_bad_help);
  verb->add_flag("--json", command->json, "print a line of JSON for each item");
  verb->footer(
      "Examples:\n  cloze predict runs/wiki-sst2 new.tsv --json\n"
      "  cloze predict runs/wiki-sst2 new.tsv --out labelled.tsv\n"
      "  head -100 new.tsv | cloze predict runs/wiki-sst2 -\n"
      "  cloze predict imported new.tsv --task sst2.yaml\n\n"
      "Where the items have labels, figures follow.");
  verb->callback([command, &globals] {
    check_run_first(command->run, {command->file});
    if (const auto name = command->task; !name.empty()) {
      command->task = task_file(name);
      require<ConfigError>(!command->task.empty(), "--task ", name, ": no such file, and no ready task");
    }
    const auto& out = command->out;
    const auto has = [&](const char* ending) { return out.ends_with(ending); };
    const bool has_form = has(".tsv") || has(".csv") || has(".jsonl") || has(".conll") || has(".json");
    require<ConfigError>(out.empty() || has_form, "--out ", out,
                         ": predictions are written as .tsv, .csv, .jsonl, .conll or .json; name such a file");
    if (!out.empty()) check_output_file("--out", out, {command->file});
    require<ConfigError>(out.empty() || !command->json, "--json prints, and --out writes; leave one of them out");
    for (const auto& path : command->ensemble) check_run_path(path);
    check_items_path(command->file);
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
