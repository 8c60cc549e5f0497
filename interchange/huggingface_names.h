#pragma once
// Parameter names of Hugging Face, by family. The functions for other files are in huggingface.h.
#include <ATen/ATen.h>

#include <string>
#include <string_view>
#include <vector>

#include "models/families/model_config.h"

namespace cloze {

/// A prefix of a parameter name in Cloze, and its counterparts at Hugging Face.
struct NamePair {
  std::string_view cloze;
  std::vector<std::string> huggingface;  ///< several: stacked in this order
};

/// The names at Hugging Face by the first pair that matches `name`, each after `prefix`; empty if none matches.
inline std::vector<std::string> renamed(const std::vector<NamePair>& table, std::string_view name,
                                        const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& [cloze, huggingface] : table) {
    if (!name.starts_with(cloze)) continue;
    for (const auto& part : huggingface) names.push_back(prefix + part + std::string(name.substr(cloze.size())));
    break;
  }
  return names;
}

/// True for GPT-2, T5, BART and their relatives, which share no parameter names with BERT.
bool decoder_family(const ModelConfig& model);
/// huggingface_names() of these families.
std::vector<std::string> decoder_names(const ModelConfig& model, const std::string& name);
/// Names of the token embedding tables: first the one that others are tied to, last the output head.
std::vector<std::string> token_tables(const ModelConfig& model);

/// huggingface_names() of XLNet.
std::vector<std::string> xlnet_names(const std::string& name);
/// Converts the value of a parameter to and from Hugging Face. Attention weights are [D, H, C] there; parts of one
/// parameter are concatenated.
at::Tensor xlnet_to_huggingface(const BackboneConfig& model, const std::string& name, const at::Tensor& value);
at::Tensor xlnet_from_huggingface(const std::string& name, const at::Tensor& value);

}  // namespace cloze
