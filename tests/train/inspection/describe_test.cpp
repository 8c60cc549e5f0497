#include "models/families/families.h"
#include "objectives/kinds.h"
#include "tests/support/catch.h"
#include "train/inspection/benchmark.h"
#include "train/inspection/describe.h"
#include "objectives/network.h"

using namespace cloze;
using Catch::WithinRel;

namespace {

template <class Config>
Config small() {
  Config c;
  c.vocab_size = 10, c.hidden_size = 4, c.intermediate_size = 8, c.num_hidden_layers = 2, c.num_attention_heads = 2;
  return c;
}

/// Multiply-adds of a forward pass over the expected rows of a micro-batch.
double multiply_adds(const RunConfig& run) {
  return Network(run.model, run.objectives).cost(expected_rows(run)).trained;
}

}  // namespace

TEST_CASE("the last block is computed only for tokens that are predicted, and for the first one of a pair",
          "[describe]") {
  RunConfig run;
  run.data.max_seq_length = 20;
  run.train.batch_size = 1;
  run.model = small<BertConfig>();
  run.objectives = {MlmConfig{}, NspConfig{}};
  // A block: queries, keys and values 48, output 16, feed-forward 64; scores and values of 20 keys. 3 tokens predicted.
  const double attention = 20 * (48 + 2 * 20 * 4);
  CHECK_THAT(multiply_adds(run), WithinRel(2 * attention + (20 + 4) * (16 + 64)  // blocks
                                               + 3 * (16 + 40)                   // transform and token table
                                               + 16 + 8,                         // pooler and classes
                                           1e-12));
}

TEST_CASE("a query of a windowed layer scores its window, one of a global layer all keys", "[describe]") {
  RunConfig run;
  run.data.max_seq_length = 20;
  run.train.batch_size = 1;
  auto model = small<ModernBertConfig>();
  model.num_hidden_layers = 4;
  model.attention = AlternatingAttention{.local_attention = 6};
  run.model = model;
  const auto wide = multiply_adds(run);
  model.attention = FullAttention{};
  run.model = model;
  // Two of the four layers have windows of 7 keys, of which the 3 tokens at either end lack 3 + 2 + 1.
  CHECK(multiply_adds(run) - wide == 2 * 2 * 4 * (20 * 20 - (20 * 7 - 2 * 6)));
}

TEST_CASE("rows of the objectives: lengths, predictions, and tokens whose hidden states are used", "[describe]") {
  RunConfig run;
  run.data.max_seq_length = 100;
  run.train.batch_size = 8;
  const auto row = [&](const ModelConfig& model, const ObjectiveConfig& objective) {
    run.model = model;
    run.objectives = {objective};
    return expected_rows(run).front();
  };
  SpanCorruptionConfig drop, split;
  drop.corruption = Corruption::drop;
  split.corruption = Corruption::prefix_lm;
  CHECK(row(BertConfig{}, MlmConfig{}).count == 8);
  CHECK(row(BertConfig{}, MlmConfig{}).predicted == 15);
  CHECK(row(BertConfig{}, MlmConfig{}).read == 15);
  CHECK(row(BertConfig{}, NspConfig{}).read == 1);
  CHECK(row(ElectraConfig{}, RtdConfig{}).read == 100);
  CHECK(row(Gpt2Config{}, ClmConfig{}).predicted == 100);
  CHECK(row(XlnetConfig{}, PlmConfig{}).predicted == 100.0 / 6);
  CHECK(row(BartConfig{}, DenoisingConfig{}).target_length == 100);
  CHECK_THAT(row(PegasusConfig{}, GapSentencesConfig{}).target_length, WithinRel(30.0, 1e-12));
  // Of a text of 110 tokens, 16 in 5 spans, their sentinels and the end; its source has 100 tokens.
  CHECK(row(T5Config{}, SpanCorruptionConfig{}).target_length == 22);
  CHECK(row(T5Config{}, drop).target_length == 15);
  Gpt2Config decoder;
  decoder.prefix_lm = true;
  CHECK(row(decoder, split).prefix == 50);
  CHECK(row(decoder, split).predicted == 50);
}

TEST_CASE("objectives of the same rows add what they read, at most the whole row", "[describe]") {
  RunConfig run;
  run.data.max_seq_length = 100;
  run.train.batch_size = 8;
  const auto row = [&](const Objectives& objectives) {
    run.objectives = objectives;
    return expected_rows(run).front();
  };
  for (const auto& objectives : {Objectives{MlmConfig{}, NspConfig{}}, Objectives{NspConfig{}, MlmConfig{}}}) {
    CHECK(row(objectives).predicted == 15);
    CHECK(row(objectives).read == 16);
  }
  MlmConfig all;
  all.mlm_probability = 1;
  CHECK(row({all, SopConfig{}}).read == 100);
  CHECK(row({NspConfig{}, RtdConfig{}}).read == 100);
  CHECK(row({SboConfig{}, MlmConfig{}}).boundary_predicted == 15);
  CHECK(row({}).read == 100);
  CHECK(row({}).predicted == 0);
}

TEST_CASE("of a vocabulary that is not known only its own size is V, not every size of 1", "[describe]") {
  RunConfig run;
  auto model = small<BertConfig>();
  model.vocab_size = 0;
  model.type_vocab_size = 1;
  run.model = model;
  run.objectives = {MlmConfig{}};
  const auto shape_of = [&](const std::string& name) {
    for (const auto& row : describe_run(run).layers)
      if (row.name == name) return row.shape;
    return std::string("no such row");
  };
  CHECK(shape_of("backbone.embeddings.word") == "V x 4");
  CHECK(shape_of("backbone.embeddings.token_type") == "1 x 4");
  CHECK(shape_of("mlm.head.bias") == "V");
}

TEST_CASE("activations are those of both stacks, and fewer with gradient checkpointing", "[describe]") {
  RunConfig run;
  run.data.max_seq_length = 16;
  run.objectives = {DenoisingConfig{}};
  run.train.precision = Precision::fp32;
  auto model = small<BartConfig>();
  const auto bytes = [&] {
    run.model = model;
    return describe_run(run).activation_bytes;
  };
  const auto equal = bytes();
  model.num_decoder_layers = 3;
  // A block more, for each target token: 8 widths and 2 inner widths, and 6 widths of the cross-attention.
  const auto tokens = static_cast<double>(16 * run.train.batch_size);
  CHECK(bytes() - equal == 4 * tokens * (8 * 4 + 2 * 8 + 6 * 4));
  const auto stored = bytes();
  run.train.gradient_checkpointing = true;
  CHECK(bytes() < stored);
}

TEST_CASE("the rows of a hybrid are causal or bidirectional", "[describe]") {
  RunConfig run;
  run.data.max_seq_length = 100;
  run.train.batch_size = 8;
  MntpConfig mntp;
  mntp.causal_share = 0.25;
  run.model = small<Gpt2Config>();
  run.objectives = {mntp};
  const auto rows = expected_rows(run);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].count == 6);
  CHECK(rows[0].prefix == 100);
  CHECK(rows[0].read == 15);
  CHECK(rows[1].count == 2);
  CHECK(rows[1].prefix == 0);
  CHECK(rows[1].predicted == 100);
}

TEST_CASE("FLOPs are the mean over the steps of a run, of which some lack a loss", "[describe]") {
  RunConfig run;
  run.data.max_seq_length = 16;
  run.model = small<BertConfig>();
  const auto flops = [&](const Objectives& objectives, int64_t steps) {
    run.objectives = objectives;
    run.train.budget.steps = steps;
    return describe_run(run).flops_per_step;
  };
  NspConfig late;
  late.from_step = 60;
  const auto without = flops({MlmConfig{}}, 80), with = flops({MlmConfig{}, NspConfig{}}, 80);
  CHECK(with > without);
  CHECK_THAT(flops({MlmConfig{}, late}, 80), WithinRel(0.75 * without + 0.25 * with, 1e-12));
  CHECK_THAT(flops({MlmConfig{}, late}, 40), WithinRel(without, 1e-12));
  CHECK_THAT(flops({MlmConfig{}, late}, 0), WithinRel(with, 1e-12));  // without end
  run.model = small<ElectraConfig>();
  RtdConfig stages;
  stages.generator_steps = 30;
  CHECK(flops({stages}, 60) < flops({RtdConfig{}}, 60));
}

TEST_CASE("benchmark counts the FLOPs that describe computes, each stack of an encoder-decoder model once",
          "[describe]") {
  for (const bool decoder_only : {false, true}) {
    RunConfig run;
    run.data.max_seq_length = 16;
    run.train.batch_size = 2;
    run.train.accumulation = 2;
    if (decoder_only) {
      run.model = small<Gpt2Config>();
      run.objectives = {ClmConfig{}};
    } else {
      run.model = small<BartConfig>();
      run.objectives = {DenoisingConfig{}};
    }
    CHECK_THAT(benchmark(run, {.steps = 1, .plain = true, .steps_only = true}).gflop_per_step,
               WithinRel(describe_run(run).flops_per_step / 1e9, 1e-9));
  }
}
