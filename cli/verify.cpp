#include <signal.h>
#include <sys/prctl.h>

#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/log.h"
#include "data/store/manifest.h"
#include "data/store/token_store.h"

namespace cloze {

namespace {

void verify_data(const std::string& folder) {
  for (const auto& [split, shards] : read_manifest(folder).splits) {
    if (shards.empty()) continue;
    const TokenStore store(folder, split);
    store.verify();
    const bool is_one = store.num_documents() == 1;
    log_result("data", concat(folder, " ", split, ": ", thousands(store.num_documents()),
                              is_one ? " document, " : " documents, ", thousands(store.num_tokens()),
                              " tokens, checksums match"));
  }
}

}  // namespace

void add_verify(CLI::App& app, Globals& globals) {
  auto* verify = app.add_subcommand("verify", "check numbers against golden cases, and files against checksums");
  verify->require_subcommand(1);
  verify->footer("Example:\n  cloze verify parity tests/parity/bert");

  auto* parity = verify->add_subcommand("parity", "compare every tensor of a golden case, gradients included");
  auto command = std::make_shared<VerifyParityCommand>();
  parity->add_option("folder", command->folder, "folder with config.json and model, inputs, expected .safetensors")
      ->required();
  parity->add_flag("--json", command->json, json_help);
  parity->footer("Example:\n  cloze verify parity tests/parity/bert");
  parity->callback([command, &globals] {
    check_case_path(command->folder);
    globals.exit_code = run_engine(*command);
  });

  auto path = std::make_shared<std::string>();
  auto* data = verify->add_subcommand("data", "check prepared tokens against their checksums");
  data->add_option("folder", *path, "folder made by `cloze prepare`")->required();
  data->footer("Example:\n  cloze verify data tokens");
  data->callback([path] {
    check_tokens_path(*path);
    verify_data(*path);
  });
  auto* run =
      verify->add_subcommand("run", "check the checkpoints of a run, and the rows of its task, by their manifests");
  run->add_option("run", *path, "run directory")->required();
  run->footer("Example:\n  cloze verify run runs/first");
  run->callback([path, &globals] {
    check_whole_run_path(*path);
    globals.exit_code = run_engine(VerifyRunCommand{*path});
  });

  auto* script = verify->add_subcommand("torchscript-run", "");
  auto inner = std::make_shared<RunTorchScriptCommand>();
  script->add_option("script", inner->script)->required();
  script->add_option("cases", inner->cases)->required();
  script->add_option("out", inner->out)->required();
  script->group("");  // called by `export` in a new process; not meant for users
  script->callback([inner, &globals] {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a signal to `export` removes the files, of which nothing is left to say
    globals.exit_code = run_engine(*inner);
  });
}

}  // namespace cloze
