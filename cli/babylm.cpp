#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/config/leaf_overrides.h"
#include "finetune/finetune_config.h"

namespace cloze {

namespace {

void add_collate(CLI::App& babylm, Globals& globals) {
  auto* verb = babylm.add_subcommand("collate", "write the file that a submission uploads, from results of evaluate");
  auto command = std::make_shared<CollateCommand>();
  verb->add_option("results", command->results, "folder of results, or that of one model in it")->required();
  verb->add_option("--model", command->model, "name of a model in the results (default: the folder is one of a model)");
  add_choice<BabylmBackend>(*verb, "--backend", command->backend,
                            "how its texts were scored (default: the only backend of the results)");
  add_choice<BabylmTrack>(*verb, "--track", command->track,
                          "track of the challenge, which says how many checkpoints there are");
  verb->add_option("--revision", command->revision, "revision whose predictions are submitted")->capture_default_str();
  auto* fast = verb->add_flag("--fast", command->fast, "add the scores of every checkpoint on the fast evaluation");
  verb->add_option("--data", command->data,
                   "evaluation data with the answers of the fast evaluation (default: babylm in ./suites or "
                   "$CLOZE_SUITES)")
      ->needs(fast);
  verb->add_flag("--partial", command->partial, "write what is there, in a file that is named partial_...");
  verb->footer(
      "Examples:\n  cloze babylm collate results/baby --track strict-small --fast\n"
      "  cloze babylm collate results --model baby --backend mlm --partial\n\n"
      "The file has the bytes that collate_preds.py of the challenge writes from the\n"
      "same predictions. What is missing, or has another size than the published data,\n"
      "is listed.");
  verb->callback([command, &globals] { globals.exit_code = run_engine(*command); });
}

void add_babylm_finetune(CLI::App& babylm, Globals& globals) {
  auto* verb = babylm.add_subcommand("finetune", "fine-tune on the seven tasks of the challenge, and judge them");
  auto command = std::make_shared<BabylmFinetuneCommand>();
  verb->add_option("pretrained", command->run, run_help)->required();
  verb->add_option("data", command->data, "folder glue_filtered of the evaluation data, or the folder above it")
      ->required();
  verb->add_option("--results", command->results, "folder of results, as the published program lays it out")
      ->capture_default_str();
  verb->add_option("--run", command->folder, "folder of the fine-tuned runs (default: runs/RUN-babylm)");
  add_choice<PaddingSide>(
      *verb, "--padding-side", command->padding,
      "where rows are padded as published; left: it reads the padding of shorter rows, which is reproduced");
  verb->add_option("--seeds", command->seeds, "fine-tunings of each task by our own rules, beside the published ones")
      ->capture_default_str();
  verb->add_option("--set", command->set, "override a config value of all fine-tunings: KEY=VALUE (repeatable)")
      ->allow_extra_args(false);
  verb->add_flag("--json", command->json, json_help);
  verb->footer(
      "Examples:\n  cloze babylm finetune runs/baby evaluation_data\n"
      "  cloze babylm finetune runs/baby glue_filtered --seeds 5 --results results\n\n"
      "Every task is fine-tuned as the published program does it, whose predictions\n"
      "`cloze babylm collate` takes, and by our own rules: another part than the judged\n"
      "one chooses the epoch, and the head reads the token that the family's own does.\n"
      "What is interrupted goes on with the same command.");
  verb->callback([command, &globals] {
    check_run_path(command->run);
    command->set = leaf_overrides(command->set);
    refuse_unused(command->set);
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace

void add_babylm(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("babylm", "fine-tune for the BabyLM Challenge, and write a submission to it");
  verb->require_subcommand(1);
  verb->footer(
      "Examples:\n  cloze babylm finetune runs/baby evaluation_data\n"
      "  cloze babylm collate results/baby --track strict-small --fast");
  add_babylm_finetune(*verb, globals);
  add_collate(*verb, globals);
}

}  // namespace cloze
