#include "run/run_config.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace cloze {

namespace fs = std::filesystem;

namespace {

/// What versions did that had no such key. A key has a line here where a default or a preset of today says otherwise.
struct Earlier {
  std::string section, key, value;
  std::vector<std::string> models{};  ///< the kinds that it concerns; empty: all
};
const std::vector<Earlier> earlier{
    {"optimizer", "epsilon_hat", "false"},
    {"optimizer", "decay_score_biases", "true", {"t5", "xlnet"}},  // as all matrices did
    {"schedule", "decay_in_warmup", "false"},
};

bool concerns(const Earlier& key, const ConfigTree& run) {
  const auto* kind = run.find("model.kind");
  return key.models.empty() ||
         (kind && std::find(key.models.begin(), key.models.end(), kind->text) != key.models.end());
}

/// A text of YAML, in quotes.
std::string quoted(const std::string& text) {
  std::string found = "'";
  for (const char c : text) found += c == '\'' ? "''" : std::string(1, c);
  return found + "'";
}

}  // namespace

ConfigTree load_resumed_config(const std::string& path, const std::vector<std::string>& overrides,
                               const std::string& run_yaml) {
  const auto run = ConfigTree::load(run_yaml), given = ConfigTree::load(path);
  std::map<std::string, std::string> lacking;  // section -> its lines
  for (const auto& key : earlier) {
    const auto name = key.section + "." + key.key;
    if (!run.find(name) && !given.find(name) && concerns(key, run))
      lacking[key.section] += "  " + key.key + ": " + key.value + "\n";
  }
  if (lacking.empty()) return ConfigTree::load(path, overrides);
  auto yaml = "base: " + quoted(fs::path(path).filename().string()) + "\n";
  for (const auto& [section, lines] : lacking) yaml += section + ":\n" + lines;
  return ConfigTree::parse(yaml, path + " (of an earlier version)", overrides);
}

ConfigTree load_run_config(const std::string& run_yaml, const std::vector<std::string>& overrides) {
  return load_resumed_config(run_yaml, overrides, run_yaml);
}

ConfigTree load_config(const std::string& path, const std::vector<std::string>& overrides) {
  const bool of_run =
      fs::path(path).filename() == "run.yaml" && fs::exists(fs::path(path).replace_filename("provenance.json"));
  return of_run ? load_run_config(path, overrides) : ConfigTree::load(path, overrides);
}

}  // namespace cloze
