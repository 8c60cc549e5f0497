#include "interchange/huggingface_parameters.h"

#include "interchange/huggingface/family.h"

namespace cloze {

using huggingface::family_of;

std::vector<std::string> huggingface_names(const ModelConfig& model, const std::string& name) {
  return names_in(family_of(model).names(model), name);
}

std::string huggingface_prefix(const ModelConfig& model) { return family_of(model).prefix; }

std::vector<std::string> token_tables(const ModelConfig& model) {
  const auto& family = family_of(model);
  const auto& root = family.prefix;
  if (transformer_of(model).is_encoder_decoder())
    return {root + "shared.weight", root + "encoder.embed_tokens.weight", root + "decoder.embed_tokens.weight",
            "lm_head.weight"};
  auto tables = huggingface_names(model, "backbone.embeddings.word");
  if (!family.embedding_alias.empty()) tables.push_back(family.embedding_alias);
  auto head = huggingface_names(model, "lm.head.decoder");
  if (head.empty()) head = huggingface_names(model, "mlm.head.decoder");
  tables.push_back(head[0]);
  return tables;
}

std::vector<std::string> huggingface_aliases(const ModelConfig& model, const std::string& name) {
  if (name == "mlm.head.bias" || name == "lm.head.bias") {
    const auto& alias = family_of(model).bias_alias;
    return alias.empty() ? std::vector<std::string>{} : std::vector{alias};
  }
  if (name != "backbone.embeddings.word" || !shares_embeddings(model)) return {};
  auto tables = token_tables(model);
  if (!transformer_of(model).tie_word_embeddings) tables.pop_back();
  std::erase(tables, huggingface_names(model, name)[0]);
  return tables;
}

at::Tensor to_huggingface(const ModelConfig& model, const std::string& name, const at::Tensor& value) {
  return family_of(model).to_huggingface(transformer_of(model), name, value);
}

at::Tensor from_huggingface(const ModelConfig& model, const std::string& name, const at::Tensor& value) {
  return family_of(model).from_huggingface(transformer_of(model), name, value);
}

std::string name_of_whole(const std::string& part) {
  const auto open = part.find('[');
  return open == std::string::npos ? part : part.substr(0, open) + part.substr(part.find(']') + 1);
}

void split_wholes(const ModelConfig& model, TensorMap& tensors) {
  const auto& halved = family_of(model).halved;
  if (halved.empty()) return;
  TensorMap split;
  for (const auto& [name, tensor] : tensors) {
    const auto at = name.find(halved + ".");
    if (at == std::string::npos || tensor.dim() == 0 || tensor.size(0) % 2 != 0) {
      split.emplace(name, tensor);
      continue;
    }
    const auto end = at + halved.size();
    const auto halves = tensor.chunk(2);
    for (size_t i = 0; i < 2; ++i)
      split.emplace(name.substr(0, end) + "[" + std::to_string(i) + "]" + name.substr(end), halves[i]);
  }
  tensors = std::move(split);
}

void join_parts(TensorMap& tensors) {
  std::map<std::string, std::vector<at::Tensor>> parts;  // in the order of their numbers, as names are
  for (const auto& [name, tensor] : tensors) parts[name_of_whole(name)].push_back(tensor);
  tensors.clear();
  for (const auto& [name, list] : parts) tensors[name] = list.size() == 1 ? list[0] : at::cat(list);
}

}  // namespace cloze
