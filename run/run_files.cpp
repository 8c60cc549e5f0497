#include "run/run_files.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "data/datasets_folder.h"

namespace cloze {

namespace {

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool is_checkpoint_folder(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::exists(path + "/state.json", unknown) && !is_dataset(path);
}

bool is_first_file(const std::string& name) {
  return name.starts_with("events.out.tfevents.") ||
         is_one_of({"run.yaml", "provenance.json", "init.json", "log.txt", "metrics.jsonl", "tokenizer"}, name);
}

bool is_run_file(const std::string& name) {
  return is_first_file(name) || is_one_of({"latest", "best", "summary.json", "held_out.json", "loss.svg"}, name);
}

bool is_kept_file(const std::string& name) {
  return name.ends_with(".safetensors") || name.ends_with(".tokens") || name.ends_with(".bytes") ||
         is_one_of({"manifest.json", "state.json", "cloze_tokenizer.json", "tokenizer.json", "tokenizer_config.json",
                    "vocab.txt", "vocab.json", "merges.txt", "spiece.model"},
                   name);
}

}  // namespace cloze
