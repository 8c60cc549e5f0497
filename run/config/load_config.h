#pragma once
// Loading and writing configs: those of run directories keep the defaults of the version that wrote them.
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/config/config_tree.h"
#include "run/config/config.h"

namespace cloze {

/// The config of a run directory from its run.yaml. That file names every key, so a missing key is newer than the run:
/// it gets the value that matches the behaviour of the version that wrote the file, whatever today's presets say.
/// Overrides take precedence over both. Throws ConfigError as ConfigTree::load does.
ConfigTree load_run_config(const std::string& run_yaml, const std::vector<std::string>& overrides = {});

/// The config for resuming a run: keys that are named neither in the file, nor in the overrides, nor in the run's
/// run.yaml get the same values as in load_run_config.
ConfigTree load_resumed_config(const std::string& path, const std::vector<std::string>& overrides,
                               const std::string& run_yaml);

/// A step folder where it lies: the target of a link, and the path of the working folder, whose names do not say it.
std::string located_step(const std::string& path);

/// The run directory of a path that names one, or one of its step folders. Throws CheckpointError for other paths.
std::string run_directory_of(const std::string& path);

/// Throws CheckpointError for a folder with step folders, but without the run.yaml of their run.
void require_run_config(const std::string& run);

/// The run directory whose run.yaml `path` is; empty for every other file.
std::string run_of_config(const std::string& path);

/// load_run_config where `path` is the run.yaml of a run directory, ConfigTree::load for every other file.
ConfigTree load_config(const std::string& path, const std::vector<std::string>& overrides = {});

// The templates of core/config/config.h for a whole run, which are compiled once, in load_config.cpp.
extern template RunConfig decode<RunConfig>(const ConfigTree&);
extern template std::vector<config_detail::Entry> entries<RunConfig>(RunConfig);
extern template std::string to_yaml<RunConfig>(const RunConfig&);
extern template std::string document<RunConfig>(const RunConfig&);
extern template std::string explain<RunConfig>(const ConfigTree&, const std::string&);
extern template std::vector<std::string> deviations<RunConfig>(RunConfig);

}  // namespace cloze
