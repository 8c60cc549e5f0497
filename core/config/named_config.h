#pragma once
// Configs that are found by their names: FAMILY/NAME, with or without .yaml.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace cloze {

/// Where configs are looked for: here, in configs/, and where they are installed or built with the program.
std::vector<std::filesystem::path> config_roots();

/// The config that is called FAMILY/NAME, with or without .yaml: here, or of those that ship with the program, before
/// whose names configs/ may stand; empty for none.
std::string config_of_name(const std::string& name);

/// The files of a folder of configs by their names, those that ship with the program before those of configs/ here.
std::map<std::string, std::string> shipped_configs(const std::string& folder);

/// `; did you mean 'bert/tiny'?`, of the configs that ship; empty if none is similar.
std::string did_you_mean_config(const std::string& name);
/// The names of the tasks that ship with the program or are in configs/tasks here.
std::vector<std::string> names_of_tasks();
/// The same as did_you_mean_config of the tasks, `; did you mean 'sst2'?`.
std::string did_you_mean_task(const std::string& name);

/// The task that is called NAME or tasks/NAME, with or without .yaml, of those that ship with the program, before whose
/// names configs/ may stand; empty for none.
std::string task_of_name(const std::string& name);

}  // namespace cloze
