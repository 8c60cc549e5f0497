#include "run/run_files.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/contains.h"
#include "core/error.h"
#include "core/file.h"
#include "data/reading/table_reader.h"
#include "data/reading/prepared_folder.h"

namespace cloze {

namespace {

bool is_one_of(const std::vector<std::string>& names, const std::string& name) { return contains(names, name); }

}  // namespace

bool is_step_folder(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::exists(path + "/state.json", unknown) && !is_dataset(path);
}

bool is_step_name(const std::string& name) {
  return name.size() == 13 && name.starts_with("step-") && std::all_of(name.begin() + 5, name.end(), ::isdigit);
}

std::string newest_step(const std::string& run) {
  std::error_code unknown;
  std::string newest;
  for (std::filesystem::directory_iterator at(run, unknown), end; !unknown && at != end; at.increment(unknown))
    if (const auto name = at->path().filename().string(); is_step_name(name)) newest = std::max(newest, name);
  return newest.empty() ? "" : run + "/" + newest;
}

bool is_first_file(const std::string& name) {
  return name.starts_with("events.out.tfevents.") ||
         is_one_of({"run.yaml", "provenance.json", "init.json", "log.txt", "metrics.jsonl", "tokenizer",
                    imported_folder, task_folder, ranks_folder},
                   name);
}

bool is_run_file(const std::string& name) {
  return is_first_file(name) ||
         is_one_of({"latest", "best", "summary.json", "held_out.json", "suites.json", "loss.svg", "predictions.jsonl",
                    "hardest.md", "confusion.svg", "reliability.svg", "layers.svg"},
                   name);
}

bool is_left_of_run(const std::string& name) {
  const auto final_name = name.substr(0, name.rfind(".tmp-"));
  return is_staged(name) && (is_run_file(final_name) || is_step_name(final_name));
}

bool is_kept_file(const std::string& name) {
  return name.ends_with(".safetensors") || name.ends_with(".tokens") || name.ends_with(".bytes") ||
         is_one_of({"manifest.json", "state.json", "config.yaml", "cloze_tokenizer.json", "tokenizer.json",
                    "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt", "spiece.model"},
                   name);
}

RunFolder run_folder(const std::string& run) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(run, error)) return RunFolder::vacant;
  bool has_files = false, has_others = false, has_steps = false;
  for (const auto& entry : fs::directory_iterator(run, error)) {  // an error for a file, or an unreadable folder
    const auto name = entry.path().filename().string();
    if (name == run_lock || is_left_of_run(name)) continue;
    if (name == task_folder && is_token_store(entry.path().string())) continue;  // made before the run begins
    has_files = true;
    has_steps = has_steps || is_step_name(name);
    has_others = has_others || !is_first_file(name);
  }
  require<Error>(!error || error == std::errc::not_a_directory, run, ": cannot be read (", error.message(), ")");
  if (!has_files) return error ? RunFolder::other : RunFolder::vacant;
  const bool has_config = fs::exists(run + "/run.yaml"), has_provenance = fs::exists(run + "/provenance.json");
  if (has_provenance && !has_others) return RunFolder::begun;
  return has_config && (has_provenance || has_steps) ? RunFolder::saved : RunFolder::other;
}

}  // namespace cloze
