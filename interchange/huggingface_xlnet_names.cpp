// Parameter names and shapes of Hugging Face: XLNet.
#include "interchange/huggingface_names.h"

namespace cloze {

namespace {

/// Attention weights have no `.weight` suffix there; r_w_bias and similar biases have the same names.
const std::vector<NamePair> attention{
    {"query.weight", {"q"}}, {"key_value.weight", {"k", "v"}}, {"position.weight", {"r"}}, {"output.weight", {"o"}}};
const std::vector<NamePair> block{{"attention_norm.", {"rel_attn.layer_norm."}},
                                  {"output_norm.", {"ff.layer_norm."}},
                                  {"intermediate.", {"ff.layer_1."}},
                                  {"output.", {"ff.layer_2."}}};

bool is_attention_weight(std::string_view name) {
  return name.find(".attention.") != std::string_view::npos && name.find(".weight") != std::string_view::npos;
}
bool is_output_weight(std::string_view name) { return name.find(".attention.output.") != std::string_view::npos; }

}  // namespace

std::vector<std::string> xlnet_names(const std::string& name) {
  if (name == "lm.head.decoder") return {"lm_loss.weight"};
  if (name == "lm.head.bias") return {"lm_loss.bias"};
  if (name == "backbone.embeddings.word") return {"transformer.word_embedding.weight"};
  if (name == "backbone.mask_emb") return {"transformer.mask_emb"};
  if (!name.starts_with("backbone.stack.")) return {};
  const auto dot = name.find('.', 15);
  const auto layer = "transformer.layer." + name.substr(15, dot - 15) + ".";
  const auto rest = name.substr(dot + 1);
  if (!rest.starts_with("attention.")) return renamed(block, rest, layer);
  const auto part = rest.substr(10), prefix = layer + "rel_attn.";
  const auto names = renamed(attention, part, prefix);
  return names.empty() ? std::vector<std::string>{prefix + part} : names;
}

at::Tensor xlnet_to_huggingface(const BackboneConfig& c, const std::string& name, const at::Tensor& value) {
  if (!is_attention_weight(name)) return value;
  const int64_t heads = c.num_attention_heads, width = c.head_width();
  if (is_output_weight(name)) return value.reshape({c.hidden_size, heads, width});
  return value.reshape({-1, heads * width, c.hidden_size})
      .transpose(1, 2)
      .reshape({-1, heads, width});  // n parts concatenated: [n D, H, C]
}

at::Tensor xlnet_from_huggingface(const std::string& name, const at::Tensor& value) {
  if (!is_attention_weight(name) || value.dim() != 3) return value;
  return is_output_weight(name) ? value.flatten(1) : value.flatten(1).t();
}

}  // namespace cloze
