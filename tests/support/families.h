#pragma once
// A minimal model of every family, with a matching objective.
#include <vector>

#include "models/families/families.h"
#include "tests/support/tiny.h"

struct FamilyCase {
  std::string name;
  cloze::ModelConfig model;
  cloze::Objectives objectives;
};

/// Width 64 and one or two layers, on the texts of tiny_run and, for generative models, of `prepare_marked`. Dropout
/// stays on.
inline std::vector<FamilyCase> every_family() {
  using namespace cloze;
  const auto small = [](auto model) {
    model.hidden_size = 64;
    model.num_hidden_layers = 2;
    model.num_attention_heads = 2;
    model.intermediate_size = 96;
    model.max_position_embeddings = 40;
    if (model.d_kv > 0) model.d_kv = 24;
    if (model.embedding_size > 0) model.embedding_size = 24;
    if (model.positions_after_padding) model.pad_token_id = 0;
    return model;
  };
  auto untied = small(T5Config{});
  untied.tie_word_embeddings = false;
  auto longformer = small(LongformerConfig{});
  longformer.attention = WindowAttention{.attention_window = {8}, .global_tokens = GlobalTokens::first};
  auto bigbird = small(BigBirdConfig{});
  bigbird.attention = BigBirdAttention{.block_size = 4, .num_random_blocks = 1};
  auto modernbert = small(ModernBertConfig{});
  modernbert.attention = AlternatingAttention{.global_attn_every_n_layers = 2, .local_attention = 8};
  modernbert.attention_probs_dropout_prob = modernbert.activation_dropout = 0.1;
  modernbert.num_hidden_layers = 3;
  auto rotary = small(Gpt2Config{});
  rotary.positions = Rotary{};
  auto performer = small(PerformerConfig{});
  performer.attention = PerformerAttention{.nb_features = 24};
  auto linformer = small(BertConfig{});
  linformer.attention = LinformerAttention{.compressed = 4};
  auto distances = small(BertConfig{});
  distances.positions = {PositionTable::learned, ShawVectors{5}};
  auto sloped = small(BertConfig{});
  sloped.positions = Alibi{};
  LstmConfig lstm;
  lstm.hidden_size = 48;
  auto keyed = small(BertConfig{});
  keyed.positions = RelativeKeys{.with_keys = true};
  return {{"bert", small(BertConfig{}), {default_objective<MlmConfig>(), default_objective<NspConfig>()}},
          {"spanbert", small(BertConfig{}), {default_objective<MlmConfig>(), default_objective<SboConfig>()}},
          {"roberta", small(RobertaConfig{}), {default_objective<MlmConfig>()}},
          {"albert", small(AlbertConfig{}), {default_objective<MlmConfig>(), default_objective<SopConfig>()}},
          {"electra", small(ElectraConfig{}), {default_objective<RtdConfig>()}},
          {"distilbert", small(DistilBertConfig{}), {default_objective<MlmConfig>()}},
          {"longformer", longformer, {default_objective<MlmConfig>()}},
          {"bigbird", bigbird, {default_objective<MlmConfig>()}},
          {"performer", performer, {default_objective<MlmConfig>()}},
          {"linformer", linformer, {default_objective<MlmConfig>()}},
          {"distances", distances, {default_objective<MlmConfig>()}},
          {"alibi", sloped, {default_objective<MlmConfig>()}},
          {"keyed", keyed, {default_objective<MlmConfig>()}},
          {"modernbert", modernbert, {default_objective<MlmConfig>()}},
          {"gpt2", small(Gpt2Config{}), {default_objective<ClmConfig>()}},
          {"gpt2-rotary", rotary, {default_objective<ClmConfig>()}},
          {"t5", small(T5Config{}), {default_objective<SpanCorruptionConfig>()}},
          {"t5-untied", untied, {default_objective<SpanCorruptionConfig>()}},
          {"bart", small(BartConfig{}), {default_objective<DenoisingConfig>()}},
          {"mbart", small(MBartConfig{}), {default_objective<DenoisingConfig>()}},
          {"pegasus", small(PegasusConfig{}), {default_objective<GapSentencesConfig>()}},
          {"transformer", small(VaswaniConfig{}), {default_objective<DenoisingConfig>()}},
          {"xlnet", small(XlnetConfig{}), {default_objective<PlmConfig>()}},
          {"lstm", lstm, {default_objective<ClmConfig>()}}};
}

/// The texts of `tiny_run` with sentinels, which span corruption needs.
inline std::string prepare_marked(const TempDir& dir) {
  cloze::PrepareOptions options;
  options.inputs = {dir / "text.txt"};
  options.tokenizer = dir / "vocab.txt";
  options.out = dir / "marked";
  options.format = cloze::TextFormat::lines;
  options.held_out = 0.1;
  options.threads = 1;
  options.sentinels = 40;
  cloze::prepare(options);
  return options.out;
}

/// A run config for one of these.
inline cloze::RunConfig run_of(const FamilyCase& family, const cloze::RunConfig& base, const std::string& marked) {
  auto config = base;
  config.model = family.model;
  config.objectives = family.objectives;
  config.data.tokens = marked;
  config.data.max_seq_length = 24;
  config.train.batch_size = 7;
  config.evaluation.sequences = 8;
  return config;
}
