#pragma once
// Configs of run directories, whichever version wrote them.
#include <string>
#include <vector>

#include "core/config.h"

namespace cloze {

/// The config of a run directory from its run.yaml. That file names every key, so one that it lacks is newer than the
/// run: its value is what the version did that wrote the file, whatever presets say today. Overrides count over both.
/// Throws ConfigError as ConfigTree::load does.
ConfigTree load_run_config(const std::string& run_yaml, const std::vector<std::string>& overrides = {});

/// A config with which a run goes on: keys that neither the file, nor the overrides, nor the run's run.yaml name have
/// the values that they have in load_run_config.
ConfigTree load_resumed_config(const std::string& path, const std::vector<std::string>& overrides,
                               const std::string& run_yaml);

/// load_run_config where `path` is the run.yaml of a run directory, ConfigTree::load for every other file.
ConfigTree load_config(const std::string& path, const std::vector<std::string>& overrides = {});

}  // namespace cloze
