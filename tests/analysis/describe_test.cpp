#include "tests/support/catch.h"
#include "analysis/benchmark.h"
#include "analysis/describe.h"

using namespace cloze;

namespace {

template <class Config>
Config small() {
  Config c;
  c.vocab_size = 10, c.hidden_size = 4, c.intermediate_size = 8, c.num_hidden_layers = 2, c.num_attention_heads = 2;
  return c;
}

}  // namespace

TEST_CASE(
    "multiply-adds are those of the matrix multiplications; the last block counts only at positions that are needed",
    "[describe]") {
  RunConfig run;
  run.model = small<BertConfig>();
  run.objectives = {MlmConfig{}, NspConfig{}};
  const auto cost = cost_of(run, 16);
  // A block: queries, keys, values and output 4 x 16, feed-forward 2 x 32. Output and feed-forward of the last one, 80,
  // count at the needed positions.
  CHECK(cost.linear == 2 * 128 - 80);
  CHECK(cost.attention == 2 * 2 * 16 * 4);  // scores and values of 16 keys in two layers
  CHECK(cost.head == 80 + 16 + 40);         // transform and token table
  CHECK(cost.pooled == 80 + 16 + 8);
}

TEST_CASE("a query of a windowed layer scores its window, one of a global layer all keys", "[describe]") {
  RunConfig run;
  auto model = small<ModernBertConfig>();
  model.num_hidden_layers = 4;
  model.attention = AlternatingAttention{.local_attention = 6};
  run.model = model, run.objectives = {MlmConfig{}};
  // A block: queries, keys, values and output 4 x 16, feed-forward with its gate 3 x 32.
  CHECK(cost_of(run, 16).linear == 4 * (64 + 96) - (16 + 96));
  CHECK(cost_of(run, 16).attention == 2 * (2 * 16 + 2 * 7) * 4);  // the first and the last layer, and two between
  CHECK(cost_of(run, 5).attention == 2 * 4 * 5 * 4);
}

TEST_CASE("a decoder needs the outputs of all positions", "[describe]") {
  RunConfig run;
  run.model = small<Gpt2Config>();
  run.objectives = {ClmConfig{}};
  const auto cost = cost_of(run, 16);
  CHECK(cost.linear == 2 * 128);
  CHECK(cost.head == 40);
}

TEST_CASE(
    "XLNet also scores its mems, in the content stream of all layers but the last and in the query stream of each",
    "[describe]") {
  RunConfig run;
  auto model = small<XlnetConfig>();
  model.mem_len = 8, model.reuse_len = 8;
  PlmConfig plm;
  plm.num_predict = 4;  // a quarter of 16
  run.model = model, run.objectives = {plm};
  const auto cost = cost_of(run, 16);
  // Keys and values of 16 tokens and of 8 mems in two layers; queries, output and feed-forward, 96, for one content
  // stream and two query streams of a quarter of the tokens.
  CHECK(cost.linear == 2 * 32 + 2 * 32 * 8 / 16 + 96 * (1 + 2 * 0.25));
  CHECK(cost.attention == 2 * 2 * (16 + 8) * (1 + 2 * 0.25) * 4);  // by content and by distance
  CHECK(cost.head == 40);
}

TEST_CASE("benchmark counts the FLOPs that describe computes, each stack of an encoder-decoder model once",
          "[describe]") {
  for (const bool decoder_only : {false, true}) {
    RunConfig run;
    run.data.max_seq_length = 16, run.train.batch_size = 2, run.train.accumulation = 2;
    if (decoder_only)
      run.model = small<Gpt2Config>(), run.objectives = {ClmConfig{}};
    else
      run.model = small<BartConfig>(), run.objectives = {DenoisingConfig{}};
    CHECK_THAT(benchmark(run, 1, 1, /*plain=*/true).gflop_per_step,
               Catch::WithinRel(describe_run(run).flops_per_step / 1e9, 1e-9));
  }
}
