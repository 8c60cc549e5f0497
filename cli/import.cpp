#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"

namespace cloze {

void add_import(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("import", "convert a Hugging Face model folder to a run");
  auto command = std::make_shared<ImportCommand>();
  verb->add_option("folder", command->folder,
                   "folder with config.json, model.safetensors or pytorch_model.bin (also sharded), tokenizer files")
      ->required();
  verb->add_option("--out", command->out, "run directory to create (required)");
  verb->add_option(
      "--generator", command->generator,
      "ELECTRA: folder of the generator, if `folder` is the discriminator; the run holds both, for further "
      "pretraining");
  verb->add_option("--base", command->base,
                   "run or checkpoint that `folder`, of the Python package peft, has LoRA for (adapter_config.json, "
                   "adapter_model.safetensors)");
  verb->footer(
      "Example:\n  hf download google-bert/bert-base-uncased --local-dir bert-base-uncased\n"
      "  cloze import ./bert-base-uncased --out runs/bert-base\n\n"
      "Nothing is downloaded by cloze; hf is a command of the Python package\n"
      "huggingface_hub.");
  verb->callback([command, &globals] {
    if (command->base.empty())
      check_import_path(command->folder);  // what is wrong with the folder is said first
    else
      check_run_path(command->base);
    require<ConfigError>(command->base.empty() || command->generator.empty(),
                         "--generator is of a whole ELECTRA, and --base of an adapter; leave one of them out");
    require<ConfigError>(!command->out.empty(), "--out is required; name the run directory to create: cloze import ",
                         command->folder, " --out runs/NAME");
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
