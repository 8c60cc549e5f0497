#pragma once
// Parameter names of Hugging Face, by family. The functions for other files are in huggingface.h.
#include <ATen/ATen.h>

#include <map>
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

/// huggingface_names() of ModernBERT. Its tensor "Wi.weight" is two parameters of Cloze, which are named "Wi[0].weight"
/// and "Wi[1].weight".
std::vector<std::string> modernbert_names(const std::string& name);
/// The name of the tensor that contains a part such as "Wi[1].weight".
std::string name_of_whole(const std::string& part);
/// Splits tensors of Hugging Face that are several parameters of Cloze into their parts, and concatenates parts.
void split_wholes(const ModelConfig& model, std::map<std::string, at::Tensor>& tensors);
void join_parts(std::map<std::string, at::Tensor>& tensors);

/// huggingface_names() of XLNet.
std::vector<std::string> xlnet_names(const std::string& name);
/// Converts the value of a parameter to and from Hugging Face. Attention weights are [D, H, C] there; parts of one
/// parameter are concatenated.
at::Tensor xlnet_to_huggingface(const BackboneConfig& model, const std::string& name, const at::Tensor& value);
at::Tensor xlnet_from_huggingface(const std::string& name, const at::Tensor& value);

}  // namespace cloze
