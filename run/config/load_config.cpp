#include "run/config/load_config.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/contains.h"
#include "core/error.h"
#include "models/families/families.h"
#include "objectives/kinds.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

/// The value of a key that matches the behaviour of earlier versions, which did not have it. A key is listed here if
/// today's default or a preset differs from that.
struct EarlierValue {
  std::string section, key, value;
  std::vector<std::string> models{};  ///< model kinds that it applies to; empty: all
  std::string chooser{};              ///< the key of the section that chooses who has it; empty: all have it
  std::vector<std::string> kinds{};   ///< those that have it
};
const std::vector<EarlierValue> earlier_values{
    {"optimizer", "epsilon_hat", "false", {}, "kind", {"adamw", "lamb"}},
    {"optimizer", "decay_score_biases", "true", {"t5", "xlnet"}},  // all matrices decayed
    {"schedule", "decay_in_warmup", "false", {}, "shape", {"linear", "cosine", "inverse_sqrt"}},
};

/// Whether the value at a path is one of `names`, or there is none.
bool is_one_of(const ConfigTree& run, const std::string& path, const std::vector<std::string>& names) {
  const auto* value = run.find(path);
  return !value || contains(names, value->text);
}

bool applies_to(const EarlierValue& key, const ConfigTree& run) {
  if (!key.models.empty() && (!run.find("model.kind") || !is_one_of(run, "model.kind", key.models))) return false;
  return key.kinds.empty() || is_one_of(run, key.section + "." + key.chooser, key.kinds);
}

/// A quoted YAML string.
std::string yaml_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

ConfigTree load_resumed_config(const std::string& path, const std::vector<std::string>& overrides,
                               const std::string& run_yaml) {
  const auto run = ConfigTree::load(run_yaml), file = ConfigTree::load(path);
  std::map<std::string, std::string> missing;  // section -> its lines
  for (const auto& key : earlier_values) {
    const auto name = key.section + "." + key.key;
    if (!run.find(name) && !file.find(name) && applies_to(key, run))
      missing[key.section] += "  " + key.key + ": " + key.value + "\n";
  }
  const bool is_recorded = path == run_yaml || !run_of_config(path).empty();
  if (missing.empty()) {
    auto tree = ConfigTree::load(path, overrides);
    if (is_recorded) tree.mark_recorded();
    return tree;
  }
  auto yaml = "base: " + yaml_quoted(fs::path(path).filename().string()) + "\n";
  for (const auto& [section, lines] : missing) yaml += section + ":\n" + lines;
  const auto name = path + " (of an earlier version)";
  auto tree = ConfigTree::parse(yaml, name, overrides);
  tree.mark_recorded(is_recorded ? "" : name);
  return tree;
}

ConfigTree load_run_config(const std::string& run_yaml, const std::vector<std::string>& overrides) {
  return load_resumed_config(run_yaml, overrides, run_yaml);
}

std::string located_step(const std::string& path) {
  std::error_code unknown;
  const auto named = fs::path(path + "/").lexically_normal().parent_path();  // without a slash at the end
  const bool says_it = named.filename().string().starts_with("step-") && !fs::is_symlink(named, unknown);
  const auto step = says_it ? named : fs::weakly_canonical(path + "/.", unknown);
  return step.has_parent_path() ? step.string() : (fs::path(".") / step).string();
}

std::string run_directory_of(const std::string& path) {
  if (fs::exists(path + "/run.yaml")) return path;
  const fs::path step = located_step(path), folder = step.parent_path();
  require<CheckpointError>(step.filename().string().starts_with("step-") && fs::exists(folder / "run.yaml"), path,
                           ": is neither a run directory nor a step folder of one");
  return folder.string();
}

void require_run_config(const std::string& run) {
  std::error_code unknown;
  if (fs::exists(run + "/run.yaml", unknown)) return;
  for (const auto& entry : fs::directory_iterator(run, unknown))
    require<CheckpointError>(
        !entry.path().filename().string().starts_with("step-") || !fs::exists(entry.path() / "state.json", unknown),
        run,
        ": has checkpoints, but no run.yaml, which says what they are; restore it, or name another folder with --run");
}

std::string run_of_config(const std::string& path) {
  if (fs::path(path).filename() != "run.yaml" || !fs::exists(fs::path(path).replace_filename("provenance.json")))
    return "";
  const auto folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

ConfigTree load_config(const std::string& path, const std::vector<std::string>& overrides) {
  return run_of_config(path).empty() ? ConfigTree::load(path, overrides) : load_run_config(path, overrides);
}

template RunConfig decode<RunConfig>(const ConfigTree&);
template std::vector<config_detail::Entry> entries<RunConfig>(RunConfig);
template std::string to_yaml<RunConfig>(const RunConfig&);
template std::string document<RunConfig>(const RunConfig&);
template std::string explain<RunConfig>(const ConfigTree&, const std::string&);
template std::vector<std::string> deviations<RunConfig>(RunConfig);

}  // namespace cloze
