#pragma once
// Names of parameters at Hugging Face, family by family. What other files use stands in huggingface.h.
#include <ATen/ATen.h>

#include <string>
#include <string_view>
#include <vector>

#include "models/families/model_config.h"

namespace cloze {

/// The beginning of a parameter's name, and what stands there in its place.
struct NamePair {
  std::string_view ours;
  std::vector<std::string> theirs;  ///< stacked in this order
};

/// What the first pair that begins `name` makes of it, each after `before`; none where no pair does.
inline std::vector<std::string> renamed(const std::vector<NamePair>& table, std::string_view name,
                                        const std::string& before) {
  std::vector<std::string> names;
  for (const auto& [ours, theirs] : table) {
    if (!name.starts_with(ours)) continue;
    for (const auto& part : theirs) names.push_back(before + part + std::string(name.substr(ours.size())));
    break;
  }
  return names;
}

/// GPT-2, T5, BART and its relatives, whose classes have names of their own for everything.
bool decoder_family(const ModelConfig& model);
/// As huggingface_names, of those.
std::vector<std::string> decoder_names(const ModelConfig& model, const std::string& name);
/// Names of the token tables: the one that others are tied to comes first, the head's last.
std::vector<std::string> token_tables(const ModelConfig& model);

/// As huggingface_names, of XLNet.
std::vector<std::string> xlnet_names(const std::string& name);
/// A parameter's value as it stands there, and back. Products of the attention are [D, H, C] there; those of one
/// parameter follow each other.
at::Tensor xlnet_to_huggingface(const BackboneConfig& model, const std::string& name, const at::Tensor& value);
at::Tensor xlnet_from_huggingface(const std::string& name, const at::Tensor& value);

}  // namespace cloze
