#include "run/records/provenance.h"

#include <ATen/Parallel.h>
#include <torch/version.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/commit.h"
#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/kernels/cpu.h"
#include "run/process.h"

namespace cloze {

using nlohmann::json;

namespace {

json data_of(const TokenStore& train, const TokenStore& held_out) {
  json data{{"fingerprint", data_fingerprint(train, held_out)},
            {"documents", train.num_documents()},
            {"tokens", train.num_tokens()},
            {"tokenizer", train.tokenizer().fingerprint()}};
  if (train.fingerprint() == held_out.fingerprint()) return data;
  data["held_out"] = {{"fingerprint", held_out.fingerprint()}};
  for (const auto& part : train.parts())
    data["mixture"].push_back({{"tokens_folder", part.text.folder()},
                               {"fingerprint", part.text.fingerprint()},
                               {"documents", part.text.num_documents()},
                               {"tokens", part.text.num_tokens()},
                               {"share", part.fraction}});
  return data;
}

}  // namespace

json process_entry(const std::string& command_line) {
  char date[32];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  char host[64] = "unknown";
  gethostname(host, sizeof host - 1);
  const auto commit = source_commit();
  return {{"cloze", CLOZE_VERSION},
          {"commit", commit.empty() ? json() : json(commit)},
          {"libtorch", TORCH_VERSION},
          {"date", date},
          {"command", command_line},
          {"threads", at::get_num_threads()},
          {"machine",
           {{"host", host},
            {"processor", cpu_name()},
            {"cores", usable_cores()},
            {"isa", best_isa()},
            {"bf16_units", cpu_has_bf16()}}}};
}

std::string data_fingerprint(const TokenStore& train, const TokenStore& held_out) {
  const auto &trained = train.fingerprint(), &scored = held_out.fingerprint();
  return trained == scored ? trained : hash_hex(trained + " " + scored);
}

json provenance(const TokenStore& train, const TokenStore& held_out, const std::string& command_line) {
  auto facts = process_entry(command_line);
  std::error_code unknown;  // a working directory that was removed
  facts["compiler"] = __VERSION__;
  facts["folder"] = std::filesystem::current_path(unknown).string();
  facts["tokenizer"] = train.tokenizer().fingerprint();  // of the run's folder (run/run_tokenizer.h)
  facts["data"] = data_of(train, held_out);
  return facts;
}

void record_changes(const std::string& run, const std::string& command_line, const Changes& changes) {
  const auto path = run + "/provenance.json";
  auto facts = parse_json(read_text(path, 16 << 20));
  if (!facts.is_object()) facts = json::object();
  add_to_history(facts, process_entry(command_line), changes);
  write_atomic(path, json_text(facts, 2) + "\n");
}

std::string recorded_data(const std::string& run) {
  const auto path = run + "/provenance.json";
  require<CheckpointError>(std::filesystem::exists(path), path, ": is missing, so that the tokens of the run are not ",
                           "known; restore it, or start a new run from its weights, in another folder and with "
                           "--set init.from=",
                           run);
  const auto recorded = parse_json(read_text(path, 16 << 20));
  if (recorded.is_object() && recorded.contains("imported_from") && !recorded.contains("data")) return "";
  const auto fingerprint = value_at(recorded, "/data/fingerprint");
  require<CheckpointError>(
      fingerprint.is_string(), path,
      ": is damaged, so that the tokens of the run are not known; restore it, or start a new run in another folder");
  return fingerprint.get<std::string>();
}

void record_data(const std::string& run, const TokenStore& train, const TokenStore& held_out, int64_t step) {
  const auto path = run + "/provenance.json";
  const auto before = parse_json(read_text(path, 16 << 20));
  auto now = before.is_object() ? before : json::object();
  const auto data = now.value("data", json());
  const bool same = data.is_object() && data.value("fingerprint", json()) == data_fingerprint(train, held_out);
  if (!same) {
    auto earlier = now.value("earlier_data", json::array());
    if (!earlier.is_array()) earlier = json::array();
    if (data.is_object()) earlier.push_back(data);
    if (!earlier.empty()) now["earlier_data"] = earlier;
    now["data"] = data_of(train, held_out);
    now["data"]["since_step"] = step;
  } else if (const auto since = now["data"].find("since_step");
             since != now["data"].end() && since->is_number_integer() && since->get<int64_t>() > step) {
    *since = step;  // the checkpoints since are lost, and an earlier one goes on with these tokens
  }
  now["tokenizer"] = train.tokenizer().fingerprint();
  if (now != before) write_atomic(path, json_text(now, 2) + "\n");
}

std::optional<int64_t> data_since(const std::string& run) {
  const auto since = value_at(parse_json(read_text(run + "/provenance.json", 16 << 20)), "/data/since_step");
  return since.is_number_integer() ? std::optional(since.get<int64_t>()) : std::nullopt;
}

}  // namespace cloze
