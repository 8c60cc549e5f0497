#pragma once
// Hugging Face's words for what Cloze calls otherwise: config.json and parameter names.
#include <nlohmann/json.hpp>

#include "run/run.h"

namespace cloze {

/// A model read from a Hugging Face folder.
struct HuggingFaceModel {
  std::string architecture;
  RunConfig config;                           ///< model and objectives
  std::map<std::string, at::Tensor> tensors;  ///< under full names, `bert.` included
};

/// Reads config.json and the weights. Throws CheckpointError or ConfigError in words.
HuggingFaceModel read_huggingface(const std::string& folder);

/// Names under which a parameter of Cloze stands at Hugging Face: one, or three that are stacked (query, key, value);
/// none for what has no place there.
std::vector<std::string> huggingface_names(const ModelConfig& model, const std::string& name);
/// Other names of the same tensor.
std::vector<std::string> huggingface_aliases(const ModelConfig& model, const std::string& name);
/// The tensor there is the transpose of Cloze's (GPT-2's products are stored [in, out]).
bool huggingface_transposed(const ModelConfig& model, const std::string& name);
/// What stands before the names of an encoder: `bert.`.
std::string huggingface_prefix(const ModelConfig& model);

/// A parameter's value as it stands there: transposed, by heads, or with an axis of one in front, where it is.
Tensor to_huggingface(const ModelConfig& model, const std::string& name, const Tensor& value);

/// Copies tensors into a network; lists what was not used and what was not there.
void load_huggingface(const HuggingFaceModel& model, Network& network, std::vector<std::string>& ignored,
                      std::vector<std::string>& fresh);

/// Refuses what no class of transformers computes. Throws ConfigError.
void require_huggingface(const RunConfig& config);

/// config.json of a model with these objectives.
nlohmann::json huggingface_config(const RunConfig& config);

}  // namespace cloze
