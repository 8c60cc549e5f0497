// Hugging Face's words for models that write: config.json and names of T5, BART and its relatives, GPT-2.
#include "train/huggingface_decoders.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/log.h"
#include "train/huggingface_parts.h"

namespace cloze {

using nlohmann::json;

namespace {

std::string joined(std::string_view first, std::string_view second) { return std::string(first) + std::string(second); }

const std::vector<NamePair> bart_block{{"attention.qkv.", {"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}},
                                       {"attention.output.", {"self_attn.out_proj."}},
                                       {"attention_norm.", {"self_attn_layer_norm."}},
                                       {"cross_attention.query.", {"encoder_attn.q_proj."}},
                                       {"cross_attention.key_value.", {"encoder_attn.k_proj.", "encoder_attn.v_proj."}},
                                       {"cross_attention.output.", {"encoder_attn.out_proj."}},
                                       {"cross_norm.", {"encoder_attn_layer_norm."}},
                                       {"intermediate.", {"fc1."}},
                                       {"output_norm.", {"final_layer_norm."}},
                                       {"output.", {"fc2."}}};
const std::vector<NamePair> gpt2_block{{"attention.qkv.", {"attn.c_attn."}}, {"attention.output.", {"attn.c_proj."}}, {"attention_norm.", {"ln_1."}}, {"output_norm.", {"ln_2."}}, {"intermediate.", {"mlp.c_fc."}}, {"output.", {"mlp.c_proj."}}};

std::vector<NamePair> t5_block(bool decoder, bool gated) {
  const std::string feed = decoder ? "layer.2." : "layer.1.";
  return {{"attention.qkv.", {"layer.0.SelfAttention.q.", "layer.0.SelfAttention.k.", "layer.0.SelfAttention.v."}},
          {"attention.output.", {"layer.0.SelfAttention.o."}},
          {"attention_norm.", {"layer.0.layer_norm."}},
          {"cross_attention.query.", {"layer.1.EncDecAttention.q."}},
          {"cross_attention.key_value.", {"layer.1.EncDecAttention.k.", "layer.1.EncDecAttention.v."}},
          {"cross_attention.output.", {"layer.1.EncDecAttention.o."}},
          {"cross_norm.", {"layer.1.layer_norm."}},
          {"intermediate.", {feed + (gated ? "DenseReluDense.wi_0." : "DenseReluDense.wi.")}},
          {"gate.", {feed + "DenseReluDense.wi_1."}},
          {"output_norm.", {feed + "layer_norm."}},
          {"output.", {feed + "DenseReluDense.wo."}}};
}

bool is_t5(const ModelConfig& model) { return std::holds_alternative<T5Config>(model); }
bool is_gpt2(const ModelConfig& model) { return std::holds_alternative<Gpt2Config>(model); }

}  // namespace

bool writes_text(const ModelConfig& model) { return is_gpt2(model) || encoder_of(model).is_encoder_decoder; }

std::vector<std::string> decoder_names(const ModelConfig& model, const std::string& name) {
  const std::string_view whole = name;
  if (name == "lm.head.decoder") return {"lm_head.weight"};
  if (name == "lm.head.bias") return {"final_logits_bias"};
  if (!whole.starts_with("backbone.")) return {};
  const auto rest = whole.substr(9);
  const auto number_of = [](std::string_view text) { return std::string(text.substr(0, text.find('.'))); };
  if (is_gpt2(model)) {
    if (rest == "embeddings.word") return {"transformer.wte.weight"};
    if (rest == "embeddings.position") return {"transformer.wpe.weight"};
    if (rest.starts_with("stack.final_norm.")) return {joined("transformer.ln_f.", rest.substr(17))};
    const auto number = number_of(rest.substr(6));
    return renamed(gpt2_block, rest.substr(7 + number.size()), "transformer.h." + number + ".");
  }
  const bool t5 = is_t5(model), decoder = rest.starts_with("decoder");
  const std::string side = decoder ? "decoder" : "encoder", root = t5 ? "" : "model.";
  if (rest == "embeddings.word") return {root + "shared.weight"};
  for (const std::string_view mine : {"embeddings.", "decoder_embeddings."}) {
    if (!rest.starts_with(mine)) continue;
    const auto part = rest.substr(mine.size());
    if (part == "position") return {root + side + ".embed_positions.weight"};
    if (part.starts_with("norm.")) return {root + side + ".layernorm_embedding." + std::string(part.substr(5))};
    return {};
  }
  const auto part = rest.substr(side.size() + 1);   // behind "encoder." or "decoder."
  if (part == "relative_attention_bias") return {side + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight"};
  if (part.starts_with("final_norm.")) return {root + side + (t5 ? ".final_layer_norm." : ".layer_norm.") + std::string(part.substr(11))};
  const auto number = number_of(part);
  return t5 ? renamed(t5_block(decoder, encoder_of(model).feed_forward == "gated"), part.substr(number.size() + 1), side + ".block." + number + ".")
            : renamed(bart_block, part.substr(number.size() + 1), root + side + ".layers." + number + ".");
}

std::vector<std::string> decoder_aliases(const ModelConfig& model, const std::string& name) {
  if (name != "backbone.embeddings.word") return {};
  std::vector<std::string> names;
  if (encoder_of(model).tie_word_embeddings) names.push_back("lm_head.weight");
  if (is_gpt2(model)) return names;
  const std::string root = is_t5(model) ? "" : "model.";
  for (const auto* side : {"encoder", "decoder"}) names.push_back(root + side + ".embed_tokens.weight");
  return names;
}

namespace {

void read_gpt2(const json& j, EncoderConfig& c, const std::string& path) {
  bool inverse = false, scaled = true;
  take(j, "n_embd", c.hidden_size, path);
  take(j, "n_layer", c.num_hidden_layers, path);
  take(j, "n_head", c.num_attention_heads, path);
  take(j, "n_positions", c.max_position_embeddings, path);
  c.intermediate_size = 4 * c.hidden_size;
  take(j, "n_inner", c.intermediate_size, path);
  take(j, "activation_function", c.hidden_act, path);
  take(j, "resid_pdrop", c.hidden_dropout_prob, path);
  take(j, "attn_pdrop", c.attention_probs_dropout_prob, path);
  take(j, "layer_norm_epsilon", c.layer_norm_eps, path);
  take(j, "initializer_range", c.initializer_range, path);
  take(j, "scale_attn_weights", scaled, path);
  take(j, "scale_attn_by_inverse_layer_idx", inverse, path);
  require<ConfigError>(scaled && !inverse, path, ": scale_attn_weights: false and scale_attn_by_inverse_layer_idx: true cannot be imported");
}

void read_t5(const json& j, EncoderConfig& c, const std::string& path) {
  std::string feed = "relu";
  take(j, "d_model", c.hidden_size, path);
  take(j, "d_ff", c.intermediate_size, path);
  take(j, "d_kv", c.d_kv, path);
  take(j, "num_layers", c.num_hidden_layers, path);
  take(j, "num_heads", c.num_attention_heads, path);
  c.num_decoder_layers = c.num_hidden_layers;
  take(j, "num_decoder_layers", c.num_decoder_layers, path);
  take(j, "dropout_rate", c.hidden_dropout_prob, path);
  c.attention_probs_dropout_prob = c.activation_dropout = c.hidden_dropout_prob;
  take(j, "layer_norm_epsilon", c.layer_norm_eps, path);
  take(j, "relative_attention_num_buckets", c.relative_attention_num_buckets, path);
  take(j, "relative_attention_max_distance", c.relative_attention_max_distance, path);
  take(j, "feed_forward_proj", feed, path);
  const bool gated = feed.starts_with("gated-");
  c.feed_forward = gated ? "gated" : "plain";
  c.hidden_act = gated ? feed.substr(6) : feed;
  if (feed == "gated-gelu") c.hidden_act = "gelu_new";
  c.scale_decoder_outputs = c.tie_word_embeddings && j.value("model_type", "") != "mt5";
  take(j, "scale_decoder_outputs", c.scale_decoder_outputs, path);
}

void read_bart(const json& j, EncoderConfig& c, const std::string& path) {
  // A field that is not there has the value of the class.
  c.hidden_size = 1024, c.num_hidden_layers = c.num_decoder_layers = 12, c.num_attention_heads = c.decoder_attention_heads = 16, c.intermediate_size = c.decoder_ffn_dim = 4096;
  c.hidden_act = "gelu", c.scale_embedding = false, c.max_position_embeddings = 1024;
  take(j, "d_model", c.hidden_size, path);
  take(j, "encoder_layers", c.num_hidden_layers, path);
  take(j, "encoder_attention_heads", c.num_attention_heads, path);
  take(j, "encoder_ffn_dim", c.intermediate_size, path);
  take(j, "decoder_layers", c.num_decoder_layers, path);
  take(j, "decoder_attention_heads", c.decoder_attention_heads, path);
  take(j, "decoder_ffn_dim", c.decoder_ffn_dim, path);
  take(j, "activation_function", c.hidden_act, path);
  take(j, "dropout", c.hidden_dropout_prob, path);
  take(j, "attention_dropout", c.attention_probs_dropout_prob, path);
  take(j, "activation_dropout", c.activation_dropout, path);
  take(j, "max_position_embeddings", c.max_position_embeddings, path);
  take(j, "init_std", c.initializer_range, path);
  take(j, "scale_embedding", c.scale_embedding, path);
}

/// Takes an id, or the one of a list.
void take_id(const json& j, const char* key, int64_t& id, const std::string& path) {
  const auto found = j.find(key);
  require<ConfigError>(found == j.end() || !found->is_array() || found->size() == 1, path, ": '", key, "' is ", found == j.end() ? "" : found->dump(), "; here it is one id: write that one");
  take(found != j.end() && found->is_array() ? json{{key, (*found)[0]}} : j, key, id, path);
}

/// What every text of the class begins and ends with. `path` of a config.json, or of the generation_config.json that counts more.
void read_forced_ids(const json& j, EncoderConfig& c, const std::string& path) {
  for (const auto& [key, id] : {std::pair{"forced_bos_token_id", &c.forced_bos_token_id}, {"forced_eos_token_id", &c.forced_eos_token_id}}) {
    if (j.contains(key) && j[key].is_null()) *id = -1;
    take_id(j, key, *id, path);
  }
}

/// Ids that the folder's generation_config.json tells: forced ones count, of the others those that config.json leaves open.
void read_generation_ids(const json& config, EncoderConfig& c, const std::string& config_path) {
  const auto path = std::filesystem::path(config_path).replace_filename("generation_config.json").string();
  if (!std::filesystem::exists(path)) return;
  const auto j = read_json(path);
  if (c.is_encoder_decoder) read_forced_ids(j, c, path);
  for (const auto& [key, id] : {std::pair{"eos_token_id", &c.eos_token_id}, {"pad_token_id", &c.pad_token_id}, {"decoder_start_token_id", &c.decoder_start_token_id}}) {
    if (!j.contains(key) || j[key].is_null()) continue;
    if (!config.contains(key) || config[key].is_null()) take_id(j, key, *id, path);
    else if (j[key] != config[key]) log_warning("import", words(path, ": '", key, "' is ", j[key].dump(), ", in config.json ", config[key].dump(), ", which is taken"));
  }
}

}  // namespace

void read_decoder_config(const json& j, ModelConfig& model, const std::string& path) {
  auto& c = encoder_of(model);
  take(j, "vocab_size", c.vocab_size, path);
  take(j, "pad_token_id", c.pad_token_id, path);
  if (j.contains("eos_token_id") && j["eos_token_id"].is_null()) c.eos_token_id = -1;
  take_id(j, "eos_token_id", c.eos_token_id, path);
  take(j, "decoder_start_token_id", c.decoder_start_token_id, path);
  take(j, "tie_word_embeddings", c.tie_word_embeddings, path);
  c.initializer = "normal";
  if (c.is_encoder_decoder && !is_t5(model)) {
    // What the classes have where the file says nothing; without a start token, that of the beginning is read first.
    c.forced_eos_token_id = std::holds_alternative<PegasusConfig>(model) ? 1 : 2;
    const bool start = j.contains("decoder_start_token_id") ? !j["decoder_start_token_id"].is_null() : !std::holds_alternative<MBartConfig>(model);
    if (!start) c.decoder_start_token_id = 0, take(j, "bos_token_id", c.decoder_start_token_id, path);
  }
  if (c.is_encoder_decoder) read_forced_ids(j, c, path);
  read_generation_ids(j, c, path);
  if (is_gpt2(model)) read_gpt2(j, c, path);
  else if (is_t5(model)) read_t5(j, c, path);
  else read_bart(j, c, path);
  c.freeze_pad_embedding = !is_gpt2(model) && !is_t5(model);
}

json decoder_config(const ModelConfig& model) {
  const auto& c = encoder_of(model);
  json j{{"vocab_size", c.vocab_size}, {"eos_token_id", c.eos_token_id >= 0 ? json(c.eos_token_id) : json()}, {"tie_word_embeddings", c.tie_word_embeddings}, {"dtype", "float32"}, {"use_cache", true}};
  if (is_gpt2(model)) {
    j.update({{"n_embd", c.hidden_size}, {"n_layer", c.num_hidden_layers}, {"n_head", c.num_attention_heads}, {"n_positions", c.max_position_embeddings}, {"n_inner", c.intermediate_size},
              {"activation_function", c.hidden_act}, {"resid_pdrop", c.hidden_dropout_prob}, {"embd_pdrop", c.hidden_dropout_prob}, {"attn_pdrop", c.attention_probs_dropout_prob},
              {"layer_norm_epsilon", c.layer_norm_eps}, {"initializer_range", c.initializer_range}, {"bos_token_id", j["eos_token_id"]}});
    return j;
  }
  const auto or_that = [](int64_t given, int64_t else_that) { return given > 0 ? given : else_that; };
  j.update({{"is_encoder_decoder", true}, {"d_model", c.hidden_size}, {"pad_token_id", c.pad_token_id}, {"decoder_start_token_id", c.decoder_start_token_id}});
  for (const auto& [key, id] : {std::pair{"forced_bos_token_id", c.forced_bos_token_id}, {"forced_eos_token_id", c.forced_eos_token_id}}) j[key] = id >= 0 ? json(id) : json();
  if (is_t5(model)) {
    j.update({{"d_ff", c.intermediate_size}, {"d_kv", c.head_width()}, {"num_layers", c.num_hidden_layers}, {"num_decoder_layers", or_that(c.num_decoder_layers, c.num_hidden_layers)}, {"num_heads", c.num_attention_heads},
              {"dropout_rate", c.hidden_dropout_prob}, {"layer_norm_epsilon", c.layer_norm_eps}, {"relative_attention_num_buckets", c.relative_attention_num_buckets},
              {"relative_attention_max_distance", c.relative_attention_max_distance}, {"scale_decoder_outputs", c.scale_decoder_outputs},
              {"feed_forward_proj", c.feed_forward == "gated" ? "gated-" + (c.hidden_act == "gelu_new" ? "gelu" : c.hidden_act) : c.hidden_act}});
    return j;
  }
  j.update({{"encoder_layers", c.num_hidden_layers}, {"encoder_attention_heads", c.num_attention_heads}, {"encoder_ffn_dim", c.intermediate_size},
            {"decoder_layers", or_that(c.num_decoder_layers, c.num_hidden_layers)}, {"decoder_attention_heads", or_that(c.decoder_attention_heads, c.num_attention_heads)},
            {"decoder_ffn_dim", or_that(c.decoder_ffn_dim, c.intermediate_size)}, {"activation_function", c.hidden_act}, {"dropout", c.hidden_dropout_prob}, {"attention_dropout", c.attention_probs_dropout_prob},
            {"activation_dropout", c.activation_dropout}, {"max_position_embeddings", c.max_position_embeddings}, {"init_std", c.initializer_range}, {"scale_embedding", c.scale_embedding},
            {"bos_token_id", 0}});
  return j;
}

}  // namespace cloze
