// Names of parameters at Hugging Face: ModernBERT.
#include "interchange/huggingface_names.h"

namespace cloze {

namespace {

const std::vector<NamePair> whole_model{{"backbone.embeddings.word", {"model.embeddings.tok_embeddings.weight"}},
                                        {"backbone.embeddings.norm.", {"model.embeddings.norm."}},
                                        {"backbone.stack.final_norm.", {"model.final_norm."}},
                                        {"mlm.head.transform.", {"head.dense."}},
                                        {"mlm.head.norm.", {"head.norm."}},
                                        {"mlm.head.decoder", {"decoder.weight"}},
                                        {"mlm.head.bias", {"decoder.bias"}}};
const std::vector<NamePair> block{{"attention.qkv.", {"attn.Wqkv."}},
                                  {"attention.output.", {"attn.Wo."}},
                                  {"attention_norm.", {"attn_norm."}},
                                  {"output_norm.", {"mlp_norm."}},
                                  {"intermediate.", {"mlp.Wi[0]."}},
                                  {"gate.", {"mlp.Wi[1]."}},
                                  {"output.", {"mlp.Wo."}}};
constexpr std::string_view stack = "backbone.stack.";

}  // namespace

std::vector<std::string> modernbert_names(const std::string& name) {
  auto names = renamed(whole_model, name, "");
  if (!names.empty() || !name.starts_with(stack)) return names;
  const auto dot = name.find('.', stack.size());
  const auto number = name.substr(stack.size(), dot - stack.size());
  return renamed(block, std::string_view(name).substr(dot + 1), "model.layers." + number + ".");
}

std::string name_of_whole(const std::string& part) {
  const auto open = part.find('[');
  return open == std::string::npos ? part : part.substr(0, open) + part.substr(part.find(']') + 1);
}

void split_wholes(const ModelConfig& model, std::map<std::string, at::Tensor>& tensors) {
  if (!std::holds_alternative<ModernBertConfig>(model)) return;
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, tensor] : tensors) {
    const auto at = name.find(".Wi.");
    if (at == std::string::npos || tensor.dim() == 0 || tensor.size(0) % 2 != 0) {
      found.emplace(name, tensor);
      continue;
    }
    const auto halves = tensor.chunk(2);
    for (size_t i = 0; i < 2; ++i)
      found.emplace(name.substr(0, at + 3) + "[" + std::to_string(i) + "]" + name.substr(at + 3), halves[i]);
  }
  tensors = std::move(found);
}

void join_parts(std::map<std::string, at::Tensor>& tensors) {
  std::map<std::string, std::vector<at::Tensor>> parts;  // in the order of their numbers, as names are
  for (const auto& [name, tensor] : tensors) parts[name_of_whole(name)].push_back(tensor);
  tensors.clear();
  for (const auto& [name, list] : parts) tensors[name] = list.size() == 1 ? list[0] : at::cat(list);
}

}  // namespace cloze
