// Hugging Face's words for XLNet: config.json, names and shapes.
#include "train/huggingface_xlnet.h"

#include "core/error.h"
#include "train/huggingface_parts.h"

namespace cloze {

using nlohmann::json;

namespace {

/// Tensors of the attention have no `.weight` there; r_w_bias and its kin are called as here.
const std::vector<NamePair> attention{{"query.weight", {"q"}}, {"key_value.weight", {"k", "v"}}, {"position.weight", {"r"}}, {"output.weight", {"o"}}};
const std::vector<NamePair> block{{"attention_norm.", {"rel_attn.layer_norm."}}, {"output_norm.", {"ff.layer_norm."}}, {"intermediate.", {"ff.layer_1."}}, {"output.", {"ff.layer_2."}}};

bool is_product(std::string_view name) { return name.find(".attention.") != std::string_view::npos && name.find(".weight") != std::string_view::npos; }
bool is_output(std::string_view name) { return name.find(".attention.output.") != std::string_view::npos; }

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
  const auto part = rest.substr(10), there = layer + "rel_attn.";
  const auto names = renamed(attention, part, there);
  return names.empty() ? std::vector<std::string>{there + part} : names;
}

at::Tensor xlnet_as_theirs(const EncoderConfig& c, const std::string& name, const at::Tensor& value) {
  if (!is_product(name)) return value;
  const int64_t heads = c.num_attention_heads, width = c.head_width();
  if (is_output(name)) return value.reshape({c.hidden_size, heads, width});
  return value.reshape({-1, heads * width, c.hidden_size}).transpose(1, 2).reshape({-1, heads, width});   // one behind the other: [n D, H, C]
}

at::Tensor xlnet_as_ours(const std::string& name, const at::Tensor& value) {
  if (!is_product(name) || value.dim() != 3) return value;
  return is_output(name) ? value.flatten(1) : value.flatten(1).t();
}

void read_xlnet_config(const json& j, EncoderConfig& c, const std::string& path) {
  take(j, "n_token", c.vocab_size, path);   // files of old versions
  take(j, "vocab_size", c.vocab_size, path);
  take(j, "d_model", c.hidden_size, path);
  take(j, "n_layer", c.num_hidden_layers, path);
  take(j, "n_head", c.num_attention_heads, path);
  take(j, "d_inner", c.intermediate_size, path);
  take(j, "ff_activation", c.hidden_act, path);
  take(j, "dropout", c.hidden_dropout_prob, path);
  c.attention_probs_dropout_prob = c.activation_dropout = c.hidden_dropout_prob;
  take(j, "initializer_range", c.initializer_range, path);
  take(j, "layer_norm_eps", c.layer_norm_eps, path);
  take(j, "pad_token_id", c.pad_token_id, path);
  take(j, "tie_word_embeddings", c.tie_word_embeddings, path);
  take(j, "attn_type", c.attn_type, path);
  take(j, "clamp_len", c.clamp_len, path);
  c.mem_len = 0;
  take(j, "mem_len", c.mem_len, path);
  take(j, "reuse_len", c.reuse_len, path);
  take(j, "bi_data", c.bi_data, path);
  take(j, "same_length", c.same_length, path);
  c.initializer = "normal", c.freeze_pad_embedding = false;
  require<ConfigError>(c.attn_type == "bi" || c.attn_type == "uni", path, ": attn_type is '", c.attn_type, "'; 'bi' and 'uni' can be imported");
  int64_t head = c.num_attention_heads > 0 ? c.head_width() : 0;
  const int64_t own = head;
  take(j, "d_head", head, path);
  require<ConfigError>(head == own, path, ": d_head ", head, " is not d_model / n_head, ", own, "; only that can be imported");
}

json xlnet_config(const EncoderConfig& c) {
  // bi_data is of training: with it the class there would read the second half of any batch backwards.
  json j{{"vocab_size", c.vocab_size}, {"d_model", c.hidden_size}, {"n_layer", c.num_hidden_layers}, {"n_head", c.num_attention_heads}, {"d_head", c.head_width()}, {"d_inner", c.intermediate_size},
         {"ff_activation", c.hidden_act}, {"dropout", c.hidden_dropout_prob}, {"initializer_range", c.initializer_range}, {"layer_norm_eps", c.layer_norm_eps}, {"pad_token_id", c.pad_token_id},
         {"tie_word_embeddings", c.tie_word_embeddings}, {"attn_type", c.attn_type}, {"clamp_len", c.clamp_len}, {"bi_data", false}, {"same_length", c.same_length},
         {"untie_r", true}, {"dtype", "float32"}};
  j["mem_len"] = c.mem_len > 0 ? json(c.mem_len) : json(nullptr);
  j["reuse_len"] = c.reuse_len > 0 ? json(c.reuse_len) : json(nullptr);
  return j;
}

}  // namespace cloze
