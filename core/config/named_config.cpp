#include "core/config/named_config.h"

#include <algorithm>

#include "core/contains.h"
#include "core/process.h"
#include "core/spelling.h"

namespace cloze {

namespace fs = std::filesystem;

std::vector<fs::path> config_roots() {
  std::vector<fs::path> roots{".", "configs"};
  const auto program = fs::path(program_path()).parent_path();
  if (program.empty()) return roots;
  for (const auto* shipped : {"../share/cloze/configs", "../configs"})
    roots.push_back((program / shipped).lexically_normal());
  return roots;
}

std::string config_of_name(const std::string& name) {
  fs::path here(name);
  if (name.empty() || here.is_absolute() || contains(here, "..")) return "";
  if (here.extension() != ".yaml") here += ".yaml";
  const auto shipped = *here.begin() == "configs" ? here.lexically_relative("configs") : here;
  std::error_code error;
  for (const auto& root : config_roots()) {
    const auto file = root / (root == "." ? here : shipped);
    if (fs::is_regular_file(file, error)) return file.lexically_normal().string();
  }
  return "";
}

namespace {

/// A name without the ending .yaml.
std::string without_ending(const std::string& name) {
  return name.ends_with(".yaml") ? name.substr(0, name.size() - 5) : name;
}

/// The names FAMILY/NAME of the configs in a folder.
void add_names(const fs::path& folder, std::vector<std::string>& names) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".yaml") names.push_back((folder.filename() / entry.path().stem()).string());
}

/// The names of all configs but those of the working directory.
std::vector<std::string> names_of_configs() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& root : config_roots())
    if (root != ".")
      for (const auto& family : fs::directory_iterator(root, error)) add_names(family.path(), names);
  return names;
}

}  // namespace

std::map<std::string, std::string> shipped_configs(const std::string& folder) {
  std::map<std::string, std::string> files;
  const auto roots = config_roots();
  std::error_code error;
  for (auto root = roots.rbegin(); root != roots.rend() && *root != "."; ++root)
    for (const auto& entry : fs::directory_iterator(*root / folder, error))
      if (entry.path().extension() == ".yaml") files.emplace(entry.path().stem().string(), entry.path().string());
  return files;
}

std::string did_you_mean_config(const std::string& name) {
  return did_you_mean(without_ending(name), names_of_configs());
}

std::vector<std::string> names_of_tasks() {
  std::vector<std::string> names;
  for (const auto& [name, file] : shipped_configs("tasks")) names.push_back(name);
  return names;
}

std::string did_you_mean_task(const std::string& name) { return did_you_mean(without_ending(name), names_of_tasks()); }

std::string task_of_name(const std::string& name) {
  const fs::path path(name);
  const auto folder = path.parent_path();
  const bool is_named = folder.empty() || folder == "tasks" || folder == "configs/tasks";
  return is_named ? config_of_name("tasks/" + path.filename().string()) : "";
}

}  // namespace cloze
