#pragma once
// Hugging Face's words for models that write text. Used by huggingface.cpp and huggingface_names.cpp.
#include <nlohmann/json.hpp>

#include "models/config.h"

namespace cloze {

/// A decoder, or an encoder with one.
bool writes_text(const ModelConfig& model);
/// As huggingface_names and huggingface_aliases.
std::vector<std::string> decoder_names(const ModelConfig& model, const std::string& name);
std::vector<std::string> decoder_aliases(const ModelConfig& model, const std::string& name);
/// Fields of config.json `j`, which stands at `path`. Throws ConfigError.
void read_decoder_config(const nlohmann::json& j, ModelConfig& model, const std::string& path);
/// The model's own part of config.json.
nlohmann::json decoder_config(const ModelConfig& model);

}  // namespace cloze
