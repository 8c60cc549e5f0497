#include <algorithm>

#include "core/contains.h"
#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/spelling.h"

namespace cloze {

namespace {

/// Empty for a format that can be written, else what to do.
std::string known_target(const std::string& name) {
  const std::vector<std::string> targets{"torchscript", "huggingface", "peft"};
  if (contains(targets, name)) return "";
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "onnx") return "onnx is not written; export to huggingface, which Optimum converts, or to torchscript";
  const auto near = lower == "hf" ? "; did you mean 'huggingface'?" : did_you_mean(lower, targets);
  return "'" + name + "' is not a target format" + (near.empty() ? "; choose torchscript, huggingface or peft" : near);
}

}  // namespace

void add_export(CLI::App& app, Globals& globals) {
  auto* verb =
      app.add_subcommand("export", "convert a run to a TorchScript file, a Hugging Face folder or an adapter of peft");
  auto command = std::make_shared<ExportCommand>();
  verb->add_option("run", command->run, run_help)->required();
  verb->add_option("--to", command->to, "target format")
      ->required()
      ->check(known_target, "{torchscript,huggingface,peft}");
  verb->add_option("--out", command->out, "TorchScript file or folder to write")->required();
  add_checkpoint_option(*verb, command->checkpoint);
  verb->add_option("--dtype", command->dtype, "torchscript: data type of the weights")
      ->check(CLI::IsMember({"float32", "bfloat16"}))
      ->capture_default_str();
  verb->add_option("--part", command->part,
                   "replaced token detection: export the generator instead of the discriminator")
      ->check(CLI::IsMember({"generator"}));
  verb->add_flag(
      "--revisions", command->revisions,
      "huggingface: one folder in --out for each checkpoint of checkpoint.at_words (chck_1M, ...), and main");
  verb->add_flag("--force", command->force, "overwrite an existing file or model folder");
  verb->add_flag("--json", command->json, json_help);
  verb->footer(
      "Example:\n  cloze export runs/first --to torchscript --out first.pt\n\n"
      "A TorchScript file is loaded in a new process and compared with the model at\n"
      "other input shapes before it is written to --out.");
  verb->callback([command, &globals] {
    require<ConfigError>(!command->revisions || command->to == "huggingface",
                         "--revisions writes Hugging Face folders, ", "and --to is ", command->to,
                         "; give --to huggingface, or leave out --revisions");
    require<ConfigError>(
        command->dtype == "float32" || command->to == "torchscript", "--dtype ", command->dtype,
        ": a folder of Hugging Face has float32 weights, which from_pretrained turns into others; leave "
        "it out");
    require<ConfigError>(
        command->part.empty() || command->to != "peft",
        "--part is of a whole network, and --to peft writes what was trained beside one; leave it out");
    check_run_path(command->run);
    if (command->to == "torchscript") check_overwritten("--out", command->out);
    command->program = globals.program;
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace cloze
