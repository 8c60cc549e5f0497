#include "core/named_config.h"

#include <algorithm>

#include "core/contains.h"
#include "core/program_path.h"

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

std::string task_of_name(const std::string& name) {
  const fs::path given(name);
  const auto folder = given.parent_path();
  const bool is_named = folder.empty() || folder == "tasks" || folder == "configs/tasks";
  return is_named ? config_of_name("tasks/" + given.filename().string()) : "";
}

}  // namespace cloze
