#include "run/provenance.h"

#include <ATen/Parallel.h>
#include <torch/version.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/kernels/cpu.h"
#include "run/process.h"

#ifndef CLOZE_COMMIT  // defined where CMake finds a git checkout
#define CLOZE_COMMIT ""
#endif

namespace cloze {

using nlohmann::json;

json provenance(const TokenStore& store, const std::string& command_line) {
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  char host[64] = "unknown";
  gethostname(host, sizeof host - 1);
  const std::string commit = CLOZE_COMMIT;
  std::error_code unknown;  // a working directory that was removed
  return {{"cloze", CLOZE_VERSION},
          {"commit", commit.empty() ? json() : json(commit)},
          {"libtorch", TORCH_VERSION},
          {"compiler", __VERSION__},
          {"date", date},
          {"command", command_line},
          {"folder", std::filesystem::current_path(unknown).string()},
          {"threads", at::get_num_threads()},
          {"machine",
           {{"host", host},
            {"processor", cpu_name()},
            {"cores", usable_cores()},
            {"isa", best_isa()},
            {"bf16_units", cpu_has_bf16()}}},
          {"data",
           {{"fingerprint", store.fingerprint()},
            {"documents", store.num_documents()},
            {"tokens", store.num_tokens()},
            {"tokenizer", store.tokenizer().fingerprint()}}}};
}

std::string recorded_data(const std::string& run) {
  const auto path = run + "/provenance.json";
  const auto recorded = parse_json(read_text(path, 16 << 20));
  if (recorded.is_object() && recorded.contains("imported_from")) return "";
  const nlohmann::json::json_pointer at("/data/fingerprint");
  require<CheckpointError>(
      recorded.is_object() && recorded.contains(at) && recorded.at(at).is_string(), path,
      ": is damaged, so that the tokens of the run are not known; restore it, or start a new run in another folder");
  return recorded.at(at).get<std::string>();
}

}  // namespace cloze
