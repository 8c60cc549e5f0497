#pragma once
// What came with an imported model and goes out with it again, in the folder `huggingface` of its run.
#include <nlohmann/json.hpp>
#include <optional>

#include "interchange/huggingface.h"

namespace cloze {

/// Keeps the config.json and generation_config.json of the folder of `model` in `run`.
void keep_origin(const HuggingFaceModel& model, const std::string& folder, const std::string& run);

/// The config.json of an export of a run whose model was imported, here or in the run that it began from: the keys, the
/// class and the model type that came in, with new values of those that changed since. Nothing for another run, and for
/// a model of another family by now. Throws CheckpointError or ConfigError for a damaged file.
std::optional<nlohmann::json> config_of_origin(const LoadedRun& run);

/// Copies the generation_config.json that came in, if there is one, into the folder of an export.
void copy_generation_config(const LoadedRun& run, const std::string& out);

}  // namespace cloze
