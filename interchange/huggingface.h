#pragma once
// A model in a Hugging Face folder: config.json, its class, and the weights.
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

}  // namespace cloze
