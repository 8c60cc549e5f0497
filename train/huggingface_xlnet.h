#pragma once
// Hugging Face's words for XLNet. Used by huggingface.cpp and huggingface_names.cpp.
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "models/config.h"

namespace cloze {

/// As huggingface_names.
std::vector<std::string> xlnet_names(const std::string& name);
/// A parameter's value as it stands there, and back. Products of the attention are [D, H, C] there; those of one parameter follow each other.
at::Tensor xlnet_as_theirs(const EncoderConfig& model, const std::string& name, const at::Tensor& value);
at::Tensor xlnet_as_ours(const std::string& name, const at::Tensor& value);
/// Fields of config.json `j`, which stands at `path`. Throws ConfigError.
void read_xlnet_config(const nlohmann::json& j, EncoderConfig& model, const std::string& path);
/// The model's own part of config.json.
nlohmann::json xlnet_config(const EncoderConfig& model);

}  // namespace cloze
