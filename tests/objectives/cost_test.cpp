#include "models/families/families.h"
#include "objectives/kinds.h"
#include "objectives/network.h"
#include "tests/support/catch.h"
#include "tests/support/counted.h"
#include "tests/support/numbers.h"

using namespace cloze;

namespace {

constexpr int64_t rows = 2, length = 16, target_length = 9, vocabulary = 31;

template <class Config>
Config small(const std::function<void(Config&)>& change = [](Config&) {}) {
  Config c;
  c.vocab_size = vocabulary, c.hidden_size = 18, c.num_hidden_layers = 2, c.num_attention_heads = 3,
  c.intermediate_size = 22, c.max_position_embeddings = 20;
  if (c.embedding_size > 0) c.embedding_size = 8;
  if (c.positions_after_padding) c.pad_token_id = 0;
  change(c);
  return c;
}

std::shared_ptr<Network> network_of(const ModelConfig& model, const Objectives& objectives) {
  auto network = std::make_shared<Network>(model, objectives);
  initialize(collect_params(*network), 0.3, false, Rng(1));
  network->eval();
  return network;
}

Tensor ids(int64_t of_rows, int64_t columns) {
  return at::arange(of_rows * columns, at::kLong).mul(7).remainder(vocabulary).view({of_rows, columns});
}

/// Rows of which some tokens are predicted: spans, one of them at the start of the text.
Batch masked_batch() {
  Batch batch;
  batch.input_ids = ids(rows, length);
  batch.token_type_ids = at::zeros_like(batch.input_ids);
  batch.positions = at::tensor({1, 4, 5, 9, 18, 19, 20, 29}, at::kLong);
  batch.labels = at::tensor({3, 9, 1, 22, 7, 5, 8, 30}, at::kLong);
  batch.pair_label = at::tensor({0, 1}, at::kLong);
  return batch;
}

/// Rows of which every token is predicted.
Batch causal_batch() {
  Batch batch;
  batch.input_ids = ids(rows, length);
  batch.positions = at::arange(rows * length, at::kLong);
  batch.labels = ids(rows, length).flatten();
  return batch;
}

Batch source_target_batch() {
  Batch batch;
  batch.input_ids = ids(rows, length);
  batch.decoder_input_ids = ids(rows, target_length);
  batch.positions = at::arange(rows * target_length, at::kLong);
  batch.labels = ids(rows, target_length).flatten();
  return batch;
}

/// Rows of plm with three and two targets.
Batch permuted_batch() {
  Batch batch;
  batch.input_ids = ids(rows, length);
  batch.token_type_ids = at::zeros_like(batch.input_ids);
  batch.visible = at::arange(length, at::kLong).ne(at::arange(length, at::kLong).unsqueeze(1)).repeat({rows, 1, 1});
  batch.target_positions = at::tensor({2, 7, 8, 5, 15, -1}, at::kLong).view({rows, 3});
  batch.positions = at::tensor({0, 1, 2, 3, 4}, at::kLong);
  batch.labels = at::tensor({3, 9, 1, 22, 7}, at::kLong);
  return batch;
}

/// Pairs of a token and a later one.
constexpr double later(int64_t tokens) { return static_cast<double>(tokens * (tokens - 1)) / 2; }

double all_of(const Cost& cost) { return cost.trained + cost.frozen; }

double counted_in(Network& network, const Batch& batch) {
  return counted(0, [&] { network.losses(batch, 0); }).all();
}

}  // namespace

TEST_CASE("the cost of a batch is what its losses multiply, less what plain operators multiply in vain",
          "[objectives][cost]") {
  struct Case {
    std::string name;
    ModelConfig model;
    Objectives objectives;
    Batch batch;
    double in_vain = 0;
  };
  constexpr double width = 18, masked_pair = 2 * width;
  RtdConfig rtd, uniform;
  SboConfig short_spans;
  short_spans.max_pair_targets = 2;
  rtd.generator_hidden_size = 0.67;
  uniform.replace_by = ReplaceBy::uniform;
  MntpConfig mntp;
  mntp.causal_share = 0.5;
  mntp.transform = true;
  auto hybrid = masked_batch();
  hybrid.prefix = at::tensor({length, int64_t{0}}, at::kLong);
  auto prefixed = causal_batch();
  prefixed.prefix = at::tensor({7, 3}, at::kLong);
  auto continued = permuted_batch();
  for (int layer = 0; layer < 2; ++layer) continued.mems.push_back(at::ones({rows, 5, 18}));
  auto backward = permuted_batch();
  backward.backward = at::tensor({0, 1}, at::kLong).ne(0);
  const auto bert = small<BertConfig>();
  LstmConfig lstm;
  lstm.vocab_size = vocabulary;
  lstm.hidden_size = 18;
  // XLNet multiplies queries with the embeddings of all distances in a batch: those of T tokens more than there are
  // keys. Queries: T of each row in the first layer, and 3 + 3 targets, one of them unused, in both.
  const double streams = length * (rows * length + 2 * 6) * width;
  // An unused query costs its projections, its scores and its values.
  const auto unused = [](double keys) { return 2 * (18 * width + width * 18 + 2 * 18 * 22 + (3 * keys + 2) * width); };
  const std::vector<Case> cases = {
      {"bert", bert, {MlmConfig{}, NspConfig{}}, masked_batch()},
      {"bert without a pair objective", bert, {MlmConfig{}}, masked_batch()},
      {"bert, pairs only", bert, {NspConfig{}}, masked_batch()},
      {"spanbert", bert, {MlmConfig{}, SboConfig{}}, masked_batch()},
      {"spanbert, short spans", bert, {MlmConfig{}, short_spans}, masked_batch()},
      {"bert without layers",
       small<BertConfig>([](auto& c) { c.num_hidden_layers = 0; }),
       {MlmConfig{}},
       masked_batch()},
      {"bert, untied",
       small<BertConfig>([](auto& c) { c.tie_word_embeddings = false; }),
       {MlmConfig{}},
       masked_batch()},
      {"bert, gated, pre-norm",
       small<BertConfig>([](auto& c) { c.feed_forward = FeedForward::gated, c.norm_place = NormPlacement::pre; }),
       {MlmConfig{}},
       masked_batch()},
      {"mntp of an encoder", bert, {MntpConfig{}}, masked_batch()},
      {"roberta", small<RobertaConfig>(), {MlmConfig{}}, masked_batch()},
      {"distilbert", small<DistilBertConfig>(), {MlmConfig{}}, masked_batch()},
      {"albert",
       small<AlbertConfig>([](auto& c) { c.num_hidden_layers = 4, c.num_hidden_groups = 2, c.inner_group_num = 2; }),
       {MlmConfig{}, SopConfig{}},
       masked_batch()},
      {"albert, shared attention",
       small<AlbertConfig>([](auto& c) { c.share = Sharing::attention; }),
       {MlmConfig{}},
       masked_batch()},
      // The plain generator computes its logits a second time to draw from them.
      {"electra", small<ElectraConfig>(), {rtd}, masked_batch(), 8 * 8 * vocabulary},
      {"electra, uniform", small<ElectraConfig>(), {uniform}, masked_batch()},
      {"performer", small<PerformerConfig>(), {MlmConfig{}}, masked_batch()},
      {"linformer",
       small<BertConfig>([](auto& c) { c.attention = LinformerAttention{}; }),
       {MlmConfig{}},
       masked_batch()},
      {"gpt2", small<Gpt2Config>(), {ClmConfig{}}, causal_batch(), 2 * rows * later(length) * masked_pair},
      {"gpt2, rotary, untied",
       small<Gpt2Config>([](auto& c) { c.positions = Rotary{}, c.tie_word_embeddings = false; }),
       {ClmConfig{}},
       causal_batch(),
       2 * rows * later(length) * masked_pair},
      {"prefix lm",
       small<Gpt2Config>([](auto& c) { c.prefix_lm = true; }),
       {SpanCorruptionConfig{}},
       prefixed,
       2 * (2 * later(length) - later(7) - later(3)) * masked_pair},
      {"mntp of a decoder, one row causal", small<Gpt2Config>(), {mntp}, hybrid, 2 * later(length) * masked_pair},
      {"t5",
       small<T5Config>([](auto& c) { c.d_kv = 4, c.feed_forward = FeedForward::gated; }),
       {SpanCorruptionConfig{}},
       source_target_batch(),
       2 * rows * later(target_length) * 2 * 12},
      {"t5, untied",
       small<T5Config>([](auto& c) { c.tie_word_embeddings = false; }),
       {SpanCorruptionConfig{}},
       source_target_batch(),
       2 * rows * later(target_length) * 2 * 64 * 3},
      {"bart with a decoder of its own shape",
       small<BartConfig>(
           [](auto& c) { c.num_decoder_layers = 3, c.decoder_attention_heads = 2, c.decoder_ffn_dim = 14; }),
       {DenoisingConfig{}},
       source_target_batch(),
       3 * rows * later(target_length) * masked_pair},
      {"pegasus",
       small<PegasusConfig>(),
       {GapSentencesConfig{}},
       source_target_batch(),
       2 * rows * later(target_length) * masked_pair},
      {"lstm", lstm, {ClmConfig{}}, causal_batch()},
      {"xlnet", small<XlnetConfig>(), {PlmConfig{}}, permuted_batch(), streams + unused(length)},
      {"xlnet with mems",
       small<XlnetConfig>([](auto& c) { c.mem_len = 5, c.reuse_len = 5; }),
       {PlmConfig{}},
       continued,
       streams + unused(length + 5)},
      {"xlnet, reversed rows",
       small<XlnetConfig>([](auto& c) { c.bi_data = true; }),
       {PlmConfig{}},
       backward,
       streams + unused(length)},
  };
  for (const auto& [name, model, objectives, batch, in_vain] : cases) {
    INFO(name);
    const auto network = network_of(model, objectives);
    CHECK(all_of(network->cost(network->row_sizes(batch))) == counted_in(*network, batch) - in_vain);
  }
}

TEST_CASE("the published count has the whole last block, as the paper's network and its operators",
          "[objectives][cost]") {
  const auto batch = masked_batch();
  const auto bert = network_of(small<BertConfig>(), {MlmConfig{}});
  const double T = length, D = 18, F = 22, V = vocabulary, predicted = 8;
  const double paper = 2 * rows * (T * (4 * D * D + 2 * D * F) + 2 * T * T * D) + predicted * (D * D + D * V);
  CHECK(bert->training_flops(batch, true) == 6 * paper);
  const auto run_whole = [&] {
    const Inputs inputs = batch;  // whose positions to read nobody says
    bert->objectives[0]->losses(*bert->backbone, bert->backbone->hidden(inputs), batch);
  };
  CHECK(bert->training_flops(batch, true) == 6 * counted(0, run_whole).all());
  CHECK(bert->training_flops(batch, true) - bert->training_flops(batch) ==
        6 * (rows * T - predicted) * (D * D + 2 * D * F));

  RtdConfig rtd;
  rtd.generator_hidden_size = 0.67;
  const auto electra = network_of(small<ElectraConfig>(), {rtd});
  double of_token = 0;  // multiply-adds after the attention in the last of the generator's two layers
  for (const auto& [name, param] : collect_params(*electra)) {
    if (!name.starts_with("rtd.generator.")) continue;
    const auto size = static_cast<double>(param.value().numel()) / 2;
    if (name.ends_with(".attention.output.weight")) of_token += size;
    if (name.ends_with(".intermediate.weight")) of_token += 2 * size;
  }
  CHECK(electra->training_flops(batch, true) - electra->training_flops(batch) == 6 * (rows * T - predicted) * of_token);

  // Blocks cost the same wherever they stand.
  const auto deep = [&](int64_t layers, bool is_whole) {
    const auto model = small<XlnetConfig>([&](auto& c) { c.num_hidden_layers = layers; });
    return network_of(model, {PlmConfig{}})->training_flops(permuted_batch(), is_whole);
  };
  CHECK(deep(2, true) - deep(1, true) == Approx(deep(3, false) - deep(2, false)));
  CHECK(deep(2, true) - deep(2, false) > 0);
  const auto causal = network_of(small<Gpt2Config>(), {ClmConfig{}});
  CHECK(causal->training_flops(causal_batch(), true) == causal->training_flops(causal_batch()));
}

TEST_CASE("a row costs the same in a batch with longer ones, whatever its attention", "[objectives][cost]") {
  const auto with = [](const AttentionConfig& attention) {
    return small<BertConfig>([&](auto& c) { c.attention = attention; });
  };
  auto longer = masked_batch();
  longer.positions = at::tensor({1, 4, 5, 9, 18, 19, 20, 25}, at::kLong);
  longer.attention_mask = at::ones({rows, length}, at::kBool);
  longer.attention_mask[1].narrow(0, 11, 5).fill_(false);
  const auto alone = [&](int64_t row, int64_t tokens) {
    auto batch = masked_batch();
    batch.input_ids = longer.input_ids.narrow(0, row, 1).narrow(1, 0, tokens);
    batch.positions = longer.positions.narrow(0, 4 * row, 4) - row * length;
    batch.labels = longer.labels.narrow(0, 4 * row, 4);
    batch.pair_label = longer.pair_label.narrow(0, row, 1);
    return batch;
  };
  for (const auto& model :
       {with(FullAttention{}), with(WindowAttention{.attention_window = {4}}), with(BigBirdAttention{.block_size = 2}),
        with(AlternatingAttention{.local_attention = 4}), with(LinformerAttention{}), with(PerformerAttention{})}) {
    INFO(kind_of(model.attention));
    const auto network = network_of(model, {MlmConfig{}, NspConfig{}, SboConfig{}});
    CHECK(network->training_flops(longer) ==
          network->training_flops(alone(0, length)) + network->training_flops(alone(1, 11)));
    CHECK(network->training_flops(alone(1, 11)) < network->training_flops(alone(0, length)));
  }
}

TEST_CASE("padding of sources and of targets costs nothing", "[objectives][cost]") {
  const auto network = network_of(small<BartConfig>(), {DenoisingConfig{}});
  auto padded = source_target_batch();
  padded.attention_mask = at::ones({rows, length}, at::kBool);
  padded.attention_mask[1].narrow(0, 12, 4).fill_(false);
  padded.positions = at::tensor({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, at::kLong);
  padded.labels = padded.labels.narrow(0, 0, 12);
  const auto sizes = network->row_sizes(padded);
  CHECK(sizes[0].length == 16);
  CHECK(sizes[0].target_length == 9);
  CHECK(sizes[1].length == 12);
  CHECK(sizes[1].target_length == 3);
  auto source = padded;
  source.input_ids = padded.input_ids.narrow(0, 1, 1).narrow(1, 0, 12);
  source.attention_mask = Tensor();
  source.decoder_input_ids = padded.decoder_input_ids.narrow(0, 1, 1).narrow(1, 0, 3);
  source.positions = at::arange(3, at::kLong);
  source.labels = padded.labels.narrow(0, 9, 3);
  CHECK(network->cost({sizes[1]}).trained == counted_in(*network, source) - 2 * later(3) * 2 * 18);
}

TEST_CASE("a loss costs something in the steps in which it counts, a frozen generator only its forward pass",
          "[objectives][cost]") {
  const auto batch = masked_batch();
  NspConfig late;
  late.from_step = 3;
  const auto bert = network_of(small<BertConfig>(), {MlmConfig{}, late});
  const auto before = bert->training_flops(batch);
  CHECK(before == 6 * counted_in(*bert, batch));
  CHECK(before == network_of(small<BertConfig>(), {MlmConfig{}})->training_flops(batch));
  bert->before_step(3, Rng(1));
  CHECK(bert->training_flops(batch) ==
        network_of(small<BertConfig>(), {MlmConfig{}, NspConfig{}})->training_flops(batch));

  RtdConfig rtd;
  rtd.generator_hidden_size = 1;
  rtd.generator_layers = 1;
  rtd.tie = EmbeddingTie::none;
  rtd.generator_steps = 4;
  const auto stages = network_of(small<ElectraConfig>(), {rtd});
  stages->before_step(0, Rng(1));
  const auto first = stages->cost(stages->row_sizes(batch));
  CHECK(first.trained == counted_in(*stages, batch));
  CHECK(first.frozen == 0);
  stages->before_step(4, Rng(1));
  const auto second = stages->cost(stages->row_sizes(batch));
  CHECK(second.frozen == first.trained);
  CHECK(second.training_flops() == 6 * second.trained + 2 * second.frozen);
  rtd.replace_by = ReplaceBy::uniform;
  rtd.generator_steps = 0;
  const auto discriminator = network_of(small<ElectraConfig>(), {rtd});
  CHECK(second.trained == counted_in(*discriminator, batch));
}

TEST_CASE("a teacher costs its forward pass, and the logits of more tokens are counted", "[objectives][cost][distil]") {
  const auto batch = masked_batch();
  const auto deeper = small<BertConfig>([](auto& c) { c.num_hidden_layers = 4, c.hidden_size = 24; });
  for (const auto tokens : {TaughtTokens::all, TaughtTokens::predicted})
    for (const double hidden : {0.0, 1.0}) {
      DistilConfig config;
      config.teacher = "runs/teacher";
      config.tokens = tokens;
      config.hidden = hidden;
      const auto student = network_of(small<BertConfig>(), {MlmConfig{}}), teacher = network_of(deeper, {MlmConfig{}});
      const double alone = student->cost(student->row_sizes(batch)).trained;
      student->learn_from(config, teacher);
      student->train();
      const at::NoGradGuard no_grad;
      const auto cost = student->cost(student->row_sizes(batch));
      CHECK(all_of(cost) == counted_in(*student, batch));
      CHECK(cost.trained > alone);
      CHECK(cost.frozen > alone);
      CHECK(student->training_flops(batch) == 6 * cost.trained + 2 * cost.frozen);
    }
}
