#pragma once
// Conversion between Cloze and Hugging Face: config.json, parameter names and values.
#include <nlohmann/json.hpp>

#include "run/run.h"

namespace cloze {

/// A model as read from a Hugging Face folder.
struct HuggingFaceModel {
  std::string architecture;
  RunConfig config;                           ///< model and objectives
  std::map<std::string, at::Tensor> tensors;  ///< by full names, prefix `bert.` included
};

/// Reads config.json and the weights. Throws CheckpointError or ConfigError.
HuggingFaceModel read_huggingface(const std::string& folder);

/// The names of a parameter at Hugging Face: one, or three to stack (query, key, value). Empty if Hugging Face has no
/// such parameter.
std::vector<std::string> huggingface_names(const ModelConfig& model, const std::string& name);
/// Further names of the same tensor.
std::vector<std::string> huggingface_aliases(const ModelConfig& model, const std::string& name);
/// True if Hugging Face stores the transpose (GPT-2's linear layers are [in, out] there).
bool huggingface_transposed(const ModelConfig& model, const std::string& name);
/// The prefix of the names of a base model: `bert.`.
std::string huggingface_prefix(const ModelConfig& model);

/// The value of a parameter in the layout of Hugging Face: transposed, split by heads, or with a leading axis of
/// size 1.
Tensor to_huggingface(const ModelConfig& model, const std::string& name, const Tensor& value);

/// Copies tensors into a network; lists unused tensors in `ignored`, and parameters without a tensor in `fresh`.
void load_huggingface(const HuggingFaceModel& model, Network& network, std::vector<std::string>& ignored,
                      std::vector<std::string>& fresh);

/// Throws ConfigError if no class of transformers computes this model.
void require_huggingface(const RunConfig& config);

/// config.json of a model with these objectives.
nlohmann::json huggingface_config(const RunConfig& config);

}  // namespace cloze
