// Parameter names of Hugging Face: T5, BART and their relatives, GPT-2.
#include "interchange/huggingface_names.h"

namespace cloze {

namespace {

std::string joined(std::string_view first, std::string_view second) { return std::string(first) + std::string(second); }

const std::vector<NamePair> bart_block{
    {"attention.qkv.", {"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}},
    {"attention.output.", {"self_attn.out_proj."}},
    {"attention_norm.", {"self_attn_layer_norm."}},
    {"cross_attention.query.", {"encoder_attn.q_proj."}},
    {"cross_attention.key_value.", {"encoder_attn.k_proj.", "encoder_attn.v_proj."}},
    {"cross_attention.output.", {"encoder_attn.out_proj."}},
    {"cross_norm.", {"encoder_attn_layer_norm."}},
    {"intermediate.", {"fc1."}},
    {"output_norm.", {"final_layer_norm."}},
    {"output.", {"fc2."}}};
const std::vector<NamePair> gpt2_block{{"attention.qkv.", {"attn.c_attn."}}, {"attention.output.", {"attn.c_proj."}},
                                       {"attention_norm.", {"ln_1."}},       {"output_norm.", {"ln_2."}},
                                       {"intermediate.", {"mlp.c_fc."}},     {"output.", {"mlp.c_proj."}}};

std::vector<NamePair> t5_block(bool decoder, bool gated) {
  const std::string feed_forward = decoder ? "layer.2." : "layer.1.";
  return {{"attention.qkv.", {"layer.0.SelfAttention.q.", "layer.0.SelfAttention.k.", "layer.0.SelfAttention.v."}},
          {"attention.output.", {"layer.0.SelfAttention.o."}},
          {"attention_norm.", {"layer.0.layer_norm."}},
          {"cross_attention.query.", {"layer.1.EncDecAttention.q."}},
          {"cross_attention.key_value.", {"layer.1.EncDecAttention.k.", "layer.1.EncDecAttention.v."}},
          {"cross_attention.output.", {"layer.1.EncDecAttention.o."}},
          {"cross_norm.", {"layer.1.layer_norm."}},
          {"intermediate.", {feed_forward + (gated ? "DenseReluDense.wi_0." : "DenseReluDense.wi.")}},
          {"gate.", {feed_forward + "DenseReluDense.wi_1."}},
          {"output_norm.", {feed_forward + "layer_norm."}},
          {"output.", {feed_forward + "DenseReluDense.wo."}}};
}

bool is_t5(const ModelConfig& model) { return std::holds_alternative<T5Config>(model); }
bool is_gpt2(const ModelConfig& model) { return std::holds_alternative<Gpt2Config>(model); }
std::string leading_number(std::string_view text) { return std::string(text.substr(0, text.find('.'))); }

std::vector<std::string> gpt2_names(std::string_view rest) {
  if (rest == "embeddings.word") return {"transformer.wte.weight"};
  if (rest == "embeddings.position") return {"transformer.wpe.weight"};
  if (rest.starts_with("stack.final_norm.")) return {joined("transformer.ln_f.", rest.substr(17))};
  const auto number = leading_number(rest.substr(6));
  return renamed(gpt2_block, rest.substr(7 + number.size()), "transformer.h." + number + ".");
}

/// `rest` as in an encoder-decoder model. A single stack keeps the names that it has there: T5's those of the encoder,
/// BART's those of the decoder.
std::string encoder_decoder_name(const ModelConfig& model, std::string_view rest) {
  if (backbone_of(model).is_encoder_decoder()) return std::string(rest);
  if (rest.starts_with("stack.")) return joined(is_t5(model) ? "encoder." : "decoder.", rest.substr(6));
  return joined(is_t5(model) ? "" : "decoder_", rest);
}

/// True if encoder and decoder share one table, which has its own name; T5's encoder without decoder keeps that name.
bool has_shared_table(const ModelConfig& model) {
  const auto& c = backbone_of(model);
  return c.is_encoder_decoder() ? shares_embeddings(model) : is_t5(model);
}

}  // namespace

bool decoder_family(const ModelConfig& model) { return as<EncoderDecoderConfig>(model) || is_gpt2(model); }

std::vector<std::string> decoder_names(const ModelConfig& model, const std::string& name) {
  const std::string_view whole = name;
  if (name == "lm.head.decoder") return {"lm_head.weight"};
  if (name == "lm.head.bias") return {"final_logits_bias"};
  if (!whole.starts_with("backbone.")) return {};
  if (is_gpt2(model)) return gpt2_names(whole.substr(9));
  const auto rest = encoder_decoder_name(model, whole.substr(9));
  const bool t5 = is_t5(model), decoder = rest.starts_with("decoder");
  const std::string side = decoder ? "decoder" : "encoder", root = t5 ? "" : "model.";
  for (const std::string prefix : {"embeddings.", "decoder_embeddings."}) {
    if (!rest.starts_with(prefix)) continue;
    const auto part = rest.substr(prefix.size());
    if (part == "word") return {root + (has_shared_table(model) ? "shared" : side + ".embed_tokens") + ".weight"};
    if (part == "position") return {root + side + ".embed_positions.weight"};
    if (part.starts_with("norm.")) return {root + side + ".layernorm_embedding." + part.substr(5)};
    return {};
  }
  const auto part = std::string_view(rest).substr(side.size() + 1);  // after "encoder." or "decoder."
  if (part == "relative_attention_bias")
    return {side + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight"};
  if (part.starts_with("final_norm."))
    return {root + side + (t5 ? ".final_layer_norm." : ".layer_norm.") + std::string(part.substr(11))};
  const auto number = leading_number(part);
  const auto of_block = part.substr(number.size() + 1);
  if (t5)
    return renamed(t5_block(decoder, backbone_of(model).feed_forward == FeedForward::gated), of_block,
                   side + ".block." + number + ".");
  return renamed(bart_block, of_block, root + side + ".layers." + number + ".");
}

}  // namespace cloze
