#pragma once
// A model in a Hugging Face folder: config.json, its class, and the weights; and what came with an imported model and
// goes out with it again, in the folder `huggingface` of its run.
#include <nlohmann/json.hpp>
#include <optional>

#include "interchange/huggingface_parameters.h"
#include "run/run.h"

namespace cloze {

/// A model as read from a Hugging Face folder.
struct HuggingFaceModel {
  std::string architecture;  ///< the class, `BertForPreTraining`
  RunConfig config;          ///< model and objectives
  TensorMap tensors;         ///< by full names, prefix `bert.` included
  /// Tensors that an index of shards names and no shard holds, by full names: a sentence about each.
  std::map<std::string, std::string> absent{};
};

/// Reads config.json and the weights. Throws CheckpointError or ConfigError.
HuggingFaceModel read_huggingface(const std::string& folder);

/// Throws ConfigError for a network with far more parameters than the weights of `model` (and of `generator`) have,
/// before memory is written for them. `config`: the file that describes it.
void require_size(const Network& network, const HuggingFaceModel& model, const std::string& config,
                  const HuggingFaceModel* generator = nullptr);

/// Copies tensors into a network; lists unused tensors in `ignored`, and parameters without a tensor in `fresh`.
void load_huggingface(const HuggingFaceModel& model, Network& network, std::vector<std::string>& ignored,
                      std::vector<std::string>& fresh);

/// Keeps the config.json and generation_config.json of the folder of `model` in `run`.
void keep_origin(const HuggingFaceModel& model, const std::string& folder, const std::string& run);

/// The config.json of an export of a run whose model was imported, here or in the run that it began from: the keys, the
/// class and the model type that came in, with new values of those that changed since. Nothing for another run, and for
/// a model of another family by now. Throws CheckpointError or ConfigError for a damaged file.
std::optional<nlohmann::json> config_of_origin(const LoadedRun& run);

/// The file in the folder `huggingface` of a run with those of sentence-transformers, by their names.
inline constexpr const char* sentence_modules = "sentence_transformers.json";

/// Keeps what makes `folder` one of sentence-transformers, its pooling included, in `run`; says so, or that a module of
/// it cannot be kept. Throws CheckpointError for a damaged list of modules.
void keep_sentence_modules(const std::string& folder, const std::string& run);

/// Writes what was kept into the folder of an export, unless `architecture` is another class than the one that came in
/// and has the head of a task.
void write_sentence_modules(const LoadedRun& run, const std::string& architecture, const std::string& out);

/// The generation_config.json that came in; empty without one.
nlohmann::json generation_of_origin(const LoadedRun& run);

}  // namespace cloze
