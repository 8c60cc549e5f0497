// The export of a run to TorchScript, tested in a new process.
#include <spawn.h>
#include <sys/wait.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/export.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/json.h"
#include "core/tensor/ops.h"
#include "core/tensor/safetensors.h"
#include "interchange/huggingface_classes.h"
#include "interchange/huggingface_config.h"
#include "interchange/interchange.h"
#include "interchange/torchscript/torchscript_parts.h"
#include "interchange/torchscript/torchscript_trial.h"
#include "run/config/load_config.h"

extern char** environ;

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

torch::jit::Module module_of(Network& network) {
  return is_exported_as_generative(network) ? generative_module(network) : encoder_module(network);
}

void run_in_new_process(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int fault = posix_spawn(&child, program.c_str(), nullptr, nullptr, argv.data(), environ);
  require<CheckpointError>(fault == 0, program, ": cannot start a process to check the export (", std::strerror(fault),
                           ")");
  int status = 0;
  const bool has_ended = waitpid(child, &status, 0) == child;
  require<CheckpointError>(has_ended && WIFEXITED(status) && WEXITSTATUS(status) == 0,
                           "the exported file fails in a new process; see the message above");
}

/// What a file has besides the module; the tokenizer frames texts as in a folder of the same run, and is written to
/// `scratch` first.
torch::jit::ExtraFilesMap extra_files(const LoadedRun& run, const json& provenance, const std::string& scratch) {
  torch::jit::ExtraFilesMap files{{"run.yaml", to_yaml(run.config)}, {"provenance.json", json_text(provenance, 2)}};
  try {
    require_huggingface(run.config);
    files["config.json"] = config_text(huggingface_config(run.config));
  } catch (const ConfigError&) {  // Hugging Face has no class for this model; run.yaml describes it
  }
  if (!run.has_tokenizer) return files;
  save_tokenizer(run, scratch);
  for (const auto& entry : fs::directory_iterator(scratch))
    files["tokenizer/" + entry.path().filename().string()] = read_text(entry.path().string());
  return files;
}

/// Writes a TorchScript file. LibTorch's own writer aborts if the disk is full; this one keeps the first error.
void write_module(const torch::jit::Module& module, const std::string& staged, const std::string& out,
                  const torch::jit::ExtraFilesMap& extra) {
  std::FILE* file = std::fopen(staged.c_str(), "wb");
  require<CheckpointError>(file != nullptr, out, ": cannot be written (", system_reason(), ")");
  std::string error;
  torch::jit::ExportModule(
      module,
      [&](const void* data, size_t bytes) {
        if (error.empty() && std::fwrite(data, 1, bytes, file) != bytes) error = system_reason();
        return bytes;
      },
      extra);
  if (error.empty() && (std::fflush(file) != 0 || fsync(fileno(file)) != 0)) error = system_reason();
  std::fclose(file);
  require<CheckpointError>(error.empty(), out, ": cannot be written (", error, ")");
}

void move_file(const std::string& from, const std::string& to) {
  const bool renamed = rename(from.c_str(), to.c_str()) == 0;
  require<CheckpointError>(renamed, to, ": cannot be written (", system_reason(), ")");
}

json provenance_of(const LoadedRun& run, const std::string& dtype) {
  json provenance{{"cloze", CLOZE_VERSION}, {"run", run.folder}, {"checkpoint", run.checkpoint}, {"dtype", dtype}};
  if (run.has_tokenizer) provenance["tokenizer"] = run.tokenizer.fingerprint();
  if (fs::exists(run.folder + "/provenance.json"))
    provenance["run_provenance"] = parse_json(read_text(run.folder + "/provenance.json"));
  return provenance;
}

/// The receipt as JSON, beside the file. `from_float32`: what bfloat16 costs, by output; empty in float32.
template <class Errors>
json receipt_json(const Receipt& receipt, const Errors& errors, const Errors& from_float32, const std::string& dtype,
                  const json& provenance) {
  json facts{{"file", fs::path(receipt.path).filename().string()},
             {"dtype", dtype},
             {"shapes", receipt.shapes},
             {"largest_error", errors},
             {"tolerance", receipt.tolerance},
             {"compared_with", concat("the model in ", dtype == "bfloat16" ? "bfloat16" : "float32")},
             {"provenance", provenance}};
  if (!from_float32.empty()) facts["largest_difference_from_float32"] = from_float32;
  return facts;
}

}  // namespace

Receipt export_torchscript(const std::string& path, const std::string& out, const std::string& dtype,
                           const std::string& self, const std::string& part, bool replace) {
  require<ConfigError>(!fs::is_directory(out), out, ": is a folder; name a file");
  sweep_unfinished(out);
  require<ConfigError>(replace || !fs::exists(out), out,
                       ": already exists; name another file, or overwrite it with --force");
  auto run = open_run(path);
  transformer_of(run.config.model);  // a loop over the tokens of a text is traced for one length alone
  if (part == "generator") take_generator(run);
  const bool bf16 = dtype == "bfloat16";
  const PlainScope as_the_file_computes;
  const auto trial = make_trial(*run.network, bf16);
  const auto exact = bf16 ? outputs_now(trial) : std::vector<NetworkOutputs>();
  if (bf16) convert_params(*run.network, at::kBFloat16);
  const auto provenance = provenance_of(run, dtype);
  const auto module = module_of(*run.network).deepcopy();

  const StagedFolder folder(out);  // removed at the end, whatever happens; its files are moved one by one
  const auto staged = folder.path() + "/module", cases_file = folder.path() + "/cases",
             results_file = folder.path() + "/results", receipt_file = folder.path() + "/receipt";
  write_module(module, staged, out, extra_files(run, provenance, folder.path() + "/tokenizer"));
  save_safetensors(cases_file, stored_inputs(trial));
  run_in_new_process(self, {"verify", "torchscript-run", staged, cases_file, results_file});

  const double tolerance = bf16 ? 2e-2 : 1e-5;
  const auto results = SafeTensors::open(results_file);
  const auto errors = errors_of(trial, results, tolerance), from_float32 = differences(exact, results);
  Receipt receipt{.path = out,
                  .largest_error = {errors.begin(), errors.end()},
                  .shapes = case_shapes(trial),
                  .tolerance = tolerance,
                  .passed = true};
  write_atomic(receipt_file, json_text(receipt_json(receipt, errors, from_float32, dtype, provenance), 2) + "\n");
  move_file(receipt_file, out + ".receipt.json");
  move_file(staged, out);
  return receipt;
}

}  // namespace cloze
