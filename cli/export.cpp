#include "cli/engine.h"
#include "cli/verbs.h"

namespace cloze {

void add_export(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("export", "convert a run to a TorchScript file or a Hugging Face folder");
  auto command = std::make_shared<ExportCommand>();
  verb->add_option("run", command->run, run_help)->required();
  verb->add_option("--to", command->to, "target format")
      ->required()
      ->check(CLI::IsMember({"torchscript", "huggingface"}));
  verb->add_option("--out", command->out, "TorchScript file or Hugging Face folder to write")->required();
  verb->add_option("--dtype", command->dtype, "torchscript: data type of the weights")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  verb->add_option("--part", command->part,
                   "replaced token detection: export the generator instead of the discriminator")
      ->check(CLI::IsMember({"generator"}));
  verb->add_flag("--force", command->force, "overwrite an existing file or model folder");
  verb->add_flag("--json", command->json, json_help);
  verb->footer(
      "Example:\n  cloze export runs/first --to torchscript --out first.pt\n\n"
      "A TorchScript file is loaded in a new process and compared with the model at\n"
      "other input shapes before it is written to --out.");
  verb->callback([command, &globals] {
    command->program = globals.program;
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
