#pragma once
// Which class of transformers a model is, by the tables of interchange/huggingface/.
#include <nlohmann/json_fwd.hpp>

#include "interchange/huggingface_parameters.h"
#include "run/config/config.h"

namespace cloze {

namespace huggingface {
struct Family;
}

/// The objectives that train the heads of the class `architecture` (`BertForPreTraining`). Reduces an encoder-decoder
/// `model` to the stack of the class, if it has only one. Throws ConfigError for an unknown class; `path` is that of
/// the file.
Objectives objectives_of_class(const std::string& architecture, ModelConfig& model, const std::string& path);

/// The class that weights belong to, for a config.json that names none. `bare`: names lack the prefix of the base
/// model.
std::string class_of_weights(const ModelConfig& model, const TensorMap& tensors, bool bare);

/// Throws ConfigError if no class of transformers computes this model.
void require_huggingface(const RunConfig& config);

/// The name of the family's class with the heads of a model. Throws ConfigError if there is none.
std::string class_of_config(const RunConfig& config, const huggingface::Family& family);

/// config.json of a model with these objectives.
nlohmann::json huggingface_config(const RunConfig& config);

}  // namespace cloze
