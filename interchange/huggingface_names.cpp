// Parameter names of Hugging Face, by family.
#include "interchange/huggingface_names.h"

#include <array>

#include "interchange/huggingface.h"

namespace cloze {

namespace {

/// A name prefix in Cloze and at Hugging Face; longer prefixes come first if one contains another.
struct Pair {
  std::string_view cloze, huggingface;
};

/// Names of the parts of an encoder in one family.
struct Family {
  std::string_view prefix;
  std::string_view projection, pooler;
  std::array<std::string_view, 3> qkv;
  std::array<Pair, 5> block;
  std::array<Pair, 4> head;  ///< MLM head: transform, norm, decoder, bias
};

constexpr std::array<std::string_view, 3> bert_qkv = {"attention.self.query.", "attention.self.key.",
                                                      "attention.self.value."};
constexpr std::array<Pair, 5> bert_block = {{{"attention.output.", "attention.output.dense."},
                                             {"attention_norm.", "attention.output.LayerNorm."},
                                             {"output_norm.", "output.LayerNorm."},
                                             {"intermediate.", "intermediate.dense."},
                                             {"output.", "output.dense."}}};
constexpr std::array<Pair, 4> roberta_head = {{{"transform.", "lm_head.dense."},
                                               {"norm.", "lm_head.layer_norm."},
                                               {"decoder", "lm_head.decoder.weight"},
                                               {"bias", "lm_head.bias"}}};

constexpr Family bert{"bert.",
                      "",
                      "pooler.dense.",
                      bert_qkv,
                      bert_block,
                      {{{"transform.", "cls.predictions.transform.dense."},
                        {"norm.", "cls.predictions.transform.LayerNorm."},
                        {"decoder", "cls.predictions.decoder.weight"},
                        {"bias", "cls.predictions.bias"}}}};
constexpr Family bigbird{bert.prefix, "", "pooler.", bert_qkv, bert_block, bert.head};
constexpr Family roberta{"roberta.", "", "pooler.dense.", bert_qkv, bert_block, roberta_head};
constexpr Family longformer{"longformer.", "", "pooler.dense.", bert_qkv, bert_block, roberta_head};
constexpr Family albert{"albert.",
                        "encoder.embedding_hidden_mapping_in.",
                        "pooler.",
                        {"attention.query.", "attention.key.", "attention.value."},
                        {{{"attention.output.", "attention.dense."},
                          {"attention_norm.", "attention.LayerNorm."},
                          {"output_norm.", "full_layer_layer_norm."},
                          {"intermediate.", "ffn."},
                          {"output.", "ffn_output."}}},
                        {{{"transform.", "predictions.dense."},
                          {"norm.", "predictions.LayerNorm."},
                          {"decoder", "predictions.decoder.weight"},
                          {"bias", "predictions.bias"}}}};
constexpr Family electra{"electra.",
                         "embeddings_project.",
                         "",
                         bert_qkv,
                         bert_block,
                         {{{"transform.", "generator_predictions.dense."},
                           {"norm.", "generator_predictions.LayerNorm."},
                           {"decoder", "generator_lm_head.weight"},
                           {"bias", "generator_lm_head.bias"}}}};
constexpr Family distilbert{"distilbert.",
                            "",
                            "",
                            {"attention.q_lin.", "attention.k_lin.", "attention.v_lin."},
                            {{{"attention.output.", "attention.out_lin."},
                              {"attention_norm.", "sa_layer_norm."},
                              {"output_norm.", "output_layer_norm."},
                              {"intermediate.", "ffn.lin1."},
                              {"output.", "ffn.lin2."}}},
                            {{{"transform.", "vocab_transform."},
                              {"norm.", "vocab_layer_norm."},
                              {"decoder", "vocab_projector.weight"},
                              {"bias", "vocab_projector.bias"}}}};

struct FamilyOf {
  const Family& operator()(const BertConfig&) const { return bert; }
  const Family& operator()(const RobertaConfig&) const { return roberta; }
  const Family& operator()(const AlbertConfig&) const { return albert; }
  const Family& operator()(const ElectraConfig&) const { return electra; }
  const Family& operator()(const DistilBertConfig&) const { return distilbert; }
  const Family& operator()(const LongformerConfig&) const { return longformer; }
  const Family& operator()(const BigBirdConfig&) const { return bigbird; }
  const Family& operator()(const BackboneConfig&) const { return bert; }
};

constexpr std::array<Pair, 4> embeddings = {{{"embeddings.word", "embeddings.word_embeddings.weight"},
                                             {"embeddings.position", "embeddings.position_embeddings.weight"},
                                             {"embeddings.token_type", "embeddings.token_type_embeddings.weight"},
                                             {"embeddings.norm.", "embeddings.LayerNorm."}}};

/// The name prefix of a block.
std::string block_name(const ModelConfig& model, const Family& family, int64_t block) {
  const std::string prefix(family.prefix);
  if (std::holds_alternative<DistilBertConfig>(model))
    return prefix + "transformer.layer." + std::to_string(block) + ".";
  if (const auto* a = std::get_if<AlbertConfig>(&model))
    return prefix + "encoder.albert_layer_groups." + std::to_string(block / a->inner_group_num) + ".albert_layers." +
           std::to_string(block % a->inner_group_num) + ".";
  return prefix + "encoder.layer." + std::to_string(block) + ".";
}

std::string joined(std::string_view first, std::string_view second) { return std::string(first) + std::string(second); }

}  // namespace

std::string huggingface_prefix(const ModelConfig& model) {
  if (backbone_of(model).is_two_stream()) return "transformer.";
  if (std::holds_alternative<ModernBertConfig>(model)) return "model.";
  if (decoder_family(model))
    return std::holds_alternative<T5Config>(model)     ? ""
           : std::holds_alternative<Gpt2Config>(model) ? "transformer."
                                                       : "model.";
  return std::string(std::visit(FamilyOf{}, model).prefix);
}

bool huggingface_transposed(const ModelConfig& model, const std::string& name) {
  return std::holds_alternative<Gpt2Config>(model) && name.starts_with("backbone.stack.") &&
         name.find("norm") == std::string::npos;
}

std::vector<std::string> huggingface_names(const ModelConfig& model, const std::string& name) {
  if (decoder_family(model)) return decoder_names(model, name);
  if (backbone_of(model).is_two_stream()) return xlnet_names(name);
  if (std::holds_alternative<ModernBertConfig>(model)) return modernbert_names(name);
  const auto& family = std::visit(FamilyOf{}, model);
  const std::string_view whole = name;
  if (whole.starts_with("backbone.stack.")) {
    const auto dot = whole.find('.', 15);
    const auto block = block_name(model, family, std::stoll(name.substr(15, dot - 15)));
    const auto rest = whole.substr(dot + 1);
    if (rest.starts_with("attention.qkv.")) {
      std::vector<std::string> three;
      for (const auto part : family.qkv) three.push_back(joined(block, part) + std::string(rest.substr(14)));
      return three;
    }
    if (rest == "attention.distance") return {block + "attention.self.distance_embedding.weight"};
    if (rest.starts_with("attention.query_global.")) return {block + "attention.self." + std::string(rest.substr(10))};
    if (rest.starts_with("attention.key_value_global.")) {
      const std::string part(rest.substr(27));
      return {block + "attention.self.key_global." + part, block + "attention.self.value_global." + part};
    }
    for (const auto& pair : family.block)
      if (rest.starts_with(pair.cloze))
        return {joined(block, pair.huggingface) + std::string(rest.substr(pair.cloze.size()))};
  } else if (whole.starts_with("backbone.")) {
    const auto rest = whole.substr(9);
    for (const auto& pair : embeddings)
      if (rest.starts_with(pair.cloze))
        return {joined(family.prefix, pair.huggingface) + std::string(rest.substr(pair.cloze.size()))};
    if (rest.starts_with("projection.") && !family.projection.empty())
      return {joined(family.prefix, family.projection) + std::string(rest.substr(11))};
    if (rest.starts_with("pooler.") && !family.pooler.empty())
      return {joined(family.prefix, family.pooler) + std::string(rest.substr(7))};
  } else if (whole.starts_with("mlm.head.") || whole.starts_with("lm.head.")) {
    const auto rest = whole.substr(whole.find("head.") + 5);
    for (const auto& pair : family.head)
      if (rest.starts_with(pair.cloze)) return {joined(pair.huggingface, rest.substr(pair.cloze.size()))};
  } else if (whole.starts_with("sop.head.") && std::holds_alternative<AlbertConfig>(model)) {
    return {joined("sop_classifier.classifier.", whole.substr(9))};
  } else if (whole.starts_with("nsp.head.") || whole.starts_with("sop.head.")) {
    return {joined("cls.seq_relationship.", whole.substr(9))};
  } else if (whole.starts_with("rtd.dense.")) {
    return {joined("discriminator_predictions.dense.", whole.substr(10))};
  } else if (whole.starts_with("rtd.prediction.")) {
    return {joined("discriminator_predictions.dense_prediction.", whole.substr(15))};
  }
  return {};
}

std::vector<std::string> token_tables(const ModelConfig& model) {
  if (backbone_of(model).is_encoder_decoder()) {
    const std::string root = huggingface_prefix(model);
    return {root + "shared.weight", root + "encoder.embed_tokens.weight", root + "decoder.embed_tokens.weight",
            "lm_head.weight"};
  }
  const bool lm = decoder_family(model) || backbone_of(model).is_two_stream();
  std::vector<std::string> tables = huggingface_names(model, "backbone.embeddings.word");
  if (std::holds_alternative<T5Config>(model)) tables.push_back("encoder.embed_tokens.weight");
  tables.push_back(huggingface_names(model, lm ? "lm.head.decoder" : "mlm.head.decoder")[0]);
  return tables;
}

std::vector<std::string> huggingface_aliases(const ModelConfig& model, const std::string& name) {
  if (name == "mlm.head.bias" || (name == "lm.head.bias" && !decoder_family(model))) {
    // The output bias has a second name; some versions store that one, some both.
    if (std::holds_alternative<BertConfig>(model) || std::holds_alternative<BigBirdConfig>(model))
      return {"cls.predictions.decoder.bias"};
    if (std::holds_alternative<RobertaConfig>(model) || std::holds_alternative<LongformerConfig>(model))
      return {"lm_head.decoder.bias"};
    if (std::holds_alternative<AlbertConfig>(model)) return {"predictions.decoder.bias"};
    return {};
  }
  const bool shared = name == "backbone.embeddings.word" && shares_embeddings(model);
  if (!shared) return {};
  auto tables = token_tables(model);
  if (!backbone_of(model).tie_word_embeddings) tables.pop_back();
  std::erase(tables, huggingface_names(model, name)[0]);
  return tables;
}

}  // namespace cloze
