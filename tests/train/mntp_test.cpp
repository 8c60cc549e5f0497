// Hybrids of masked and causal prediction: training, evaluation, filling, generation.
#include "inference/generation/fill.h"
#include "inference/generation/generate.h"
#include "models/attention/kinds.h"
#include "models/families/bart.h"
#include "models/families/gpt2.h"
#include "models/families/xlnet.h"
#include "objectives/kinds.h"
#include "run/checkpoints/init.h"
#include "run/config/evaluation_protocol.h"
#include "run/run.h"
#include "tests/support/runs.h"
#include "tests/support/small.h"

using namespace cloze;

namespace {

/// A GPT-2 of one layer over the tiny language, a quarter of its rows causal.
RunConfig hybrid_run(const TempDir& dir, int64_t steps) {
  auto config = tiny_run(dir, steps);
  Gpt2Config model;
  model.hidden_size = 32, model.num_hidden_layers = 2, model.num_attention_heads = 2, model.intermediate_size = 64,
  model.max_position_embeddings = 40, model.hidden_dropout_prob = model.attention_probs_dropout_prob = 0;
  MntpConfig mntp;
  mntp.causal_share = 0.25;
  config.model = model;
  config.objectives = {mntp};
  return config;
}

}  // namespace

TEST_CASE("a hybrid learns both losses, which are evaluated separately, and then fills masks and generates",
          "[train][learning][mntp]") {
  TempDir dir;
  auto config = hybrid_run(dir, 700);
  config.data.packing = RowPacking::full;  // so that rows have separators before texts
  const auto report = pretrain(config, {.run = dir / "run"});
  REQUIRE(report.held_out.size() == 2);
  const auto &masked = loss_named(report.held_out, "mntp"), &causal = loss_named(report.held_out, "clm");
  CHECK(masked.loss < 0.5 * report.unigram_loss);
  CHECK(causal.loss < 0.5 * report.unigram_loss);  // the first words of sentences are random
  CHECK(report.held_out_loss == Approx(0.75 * masked.loss + 0.25 * causal.loss));
  const auto rows = metrics(dir / "run");
  const auto& first = rows.front();
  CHECK(first["loss"].get<double>() ==
        Approx(0.75 * first["mntp"]["loss"].get<double>() + 0.25 * first["clm"]["loss"].get<double>()));
  CHECK(first["mntp"]["count"].get<double>() / first["clm"]["count"].get<double>() == Approx(3 * 0.3).margin(0.15));
  const auto& last = rows[rows.size() - 2];  // the final one is of the evaluation
  CHECK(last["mntp"]["count"].get<double>() / last["clm"]["count"].get<double>() == Approx(3 * 0.15).margin(0.1));

  const auto run = open_run(dir / "run");
  const auto blanks = fill(run, "wb we wn [MASK] wj wm wf wa wb we [MASK] wi wj wm", 3);  // e -> n -> i -> j
  REQUIRE(blanks.size() == 2);
  CHECK(blanks[0][0].token == "wi");
  CHECK(blanks[1][0].token == "wn");
  CHECK(blanks[0][0].probability > 0.5);
  CHECK(fill(run, "[MASK] we wn wi", 1).size() == 1);  // a mask at the beginning follows a separator
  // What follows decides what stands before it: the same past, two futures.
  CHECK(fill(run, "[MASK] we wn wi wj wm wf", 1)[0][0].token == "wb");
  CHECK(fill(run, "[MASK] wh wg wd wk wp wo", 1)[0][0].token != "wb");
  GenerateOptions options;
  options.search.max_new_tokens = 3;
  CHECK(generate(run, {"wb we wn"}, options)[0][0].text == "wb we wn wi wj wm");
}

TEST_CASE("micro-batches with rows of different kinds give the loss of one batch", "[train][mntp]") {
  TempDir dir;
  auto config = hybrid_run(dir, 3);
  config.train.precision = Precision::fp32;
  config.train.batch_size = 16;
  pretrain(config, {.run = dir / "one"});
  config.train.batch_size = 2;
  config.train.accumulation = 8;
  pretrain(config, {.run = dir / "many"});
  const auto a = metrics(dir / "one"), b = metrics(dir / "many");
  for (size_t step = 0; step < 3; ++step) {
    CHECK(a[step]["mntp"]["count"] == b[step]["mntp"]["count"]);
    CHECK(a[step]["clm"]["count"] == b[step]["clm"]["count"]);
    CHECK(a[step]["loss"].get<double>() == Approx(b[step]["loss"].get<double>()).epsilon(1e-4));
  }
}

TEST_CASE("a hybrid resumes to the same bits, whatever the workers", "[train][resume][mntp]") {
  TempDir dir;
  auto config = hybrid_run(dir, 8);
  config.train.accumulation = 2;
  config.checkpoint.every = 4;
  pretrain(config, {.run = dir / "whole"});
  std::filesystem::copy(dir / "whole", dir / "half", std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(dir / "half/step-00000008");
  std::ofstream(dir / "half/latest") << "step-00000004\n";
  std::filesystem::remove(dir / "half/best");
  config.train.workers = 3;
  pretrain(config, {.run = dir / "half", .resume = true});
  for (const std::string file : {"weights.safetensors", "optimizer.safetensors"})
    CHECK(same_files(dir / ("whole/step-00000008/" + file), dir / ("half/step-00000008/" + file)));
}

TEST_CASE("a run of clm starts from the weights of a hybrid", "[train][mntp]") {
  TempDir dir;
  auto config = hybrid_run(dir, 3);
  pretrain(config, {.run = dir / "hybrid"});
  config.objectives = {ClmConfig{}};
  config.init.from = dir / "hybrid";
  config.train.budget.steps = 1;
  config.optimizer.learning_rate = 0;
  pretrain(config, {.run = dir / "clm"});
  const auto a = collect_params(*open_run(dir / "hybrid").network), b = collect_params(*open_run(dir / "clm").network);
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(at::equal(a[i].param.value(), b[i].param.value()));
}

TEST_CASE("mntp alone trains an encoder, with nsp, and fills masks", "[train][learning][mntp]") {
  TempDir dir;
  auto config = tiny_run(dir, 400);
  config.objectives = {MntpConfig{}, NspConfig{}};
  const auto report = pretrain(config, {.run = dir / "run"});
  CHECK(loss_named(report.held_out, "mntp").loss < 0.7 * report.unigram_loss);
  const auto run = open_run(dir / "run");
  CHECK(fill(run, "wb we wn [MASK] wj wm wf", 3)[0][0].token == "wi");
}

TEST_CASE("what mntp does not support is refused with the value and a remedy", "[train][config][mntp]") {
  TempDir dir;
  const auto base = hybrid_run(dir, 10);
  const auto refused = [&](const auto& change, const std::string& sentence) {
    auto config = base;
    change(config, *as<Gpt2Config>(config.model), *as<MntpConfig>(config.objectives[0]));
    INFO(sentence);
    CHECK_THROWS_WITH(validate(config), Catch::Contains(sentence));
  };
  CHECK_NOTHROW(validate(base));
  refused([](auto&, auto&, auto& o) { o.causal_share = 0.0625; },
          "causal_share 0.0625 gives some steps of 8 sequences no causal row; raise train.batch_size or "
          "train.accumulation to 16 sequences per step, or change the share");
  refused([](auto&, auto&, auto& o) { o.causal_share = 0.9; }, "gives some steps of 8 sequences no masked row");
  refused([](auto&, auto& m, auto&) { m.architecture = Architecture::encoder; },
          "causal_share 0.25 needs causal rows, and model.architecture encoder is bidirectional; set "
          "model.architecture: decoder, or causal_share: 0");
  refused(
      [](auto&, auto& m, auto&) { m.attention = PerformerAttention{}; },
      "objective mntp needs attention with a prefix to make rows of a decoder bidirectional, and model.attention of "
      "kind performer has none; choose kind: full, or model.architecture: encoder");
  refused([](auto&, auto& m, auto&) { m.positions = {PositionTable::learned, ShawVectors{4}}; },
          "attention with model.relative_positions 4 has none; choose other positions, or model.architecture: encoder");
  refused([](auto&, auto& m, auto&) { m.attention = WindowAttention{}; }, "model.attention of kind window");
  refused([](auto& c, auto&, auto&) { c.model = BartConfig{}; },
          "objective mntp trains a single stack, and model.architecture of bart is encoder_decoder; set it to decoder "
          "or encoder, or choose another objective");
  refused([](auto& c, auto&, auto&) { c.model = XlnetConfig{}; },
          "objective mntp does not support xlnet, which predicts from its query stream; choose objective kind: plm");
  refused([](auto& c, auto&, auto&) { c.objectives.push_back(ClmConfig{}); },
          "cannot be combined with clm; keep one of them, or set causal_share of mntp for causal rows");
  refused([](auto& c, auto&, auto&) { c.objectives.push_back(NspConfig{}); }, "cannot be combined with nsp");
  refused([](auto& c, auto&, auto&) { c.data.packing = RowPacking::segment_pair; },
          "data.packing is segment_pair; choose document, full, doc_sentences or full_sentences");
  refused([](auto& c, auto&, auto&) { c.data.short_seq_prob = 0.3; }, "data.short_seq_prob is 0.3; set it to 0");
  refused([](auto&, auto& m, auto&) { m.prefix_lm = true; }, "objective mntp has no input prefix");
  refused([](auto&, auto&, auto& o) { o.mask_prob = 0.95; }, "mntp: mask_prob 0.95 and random_prob 0.1");
  refused([](auto&, auto&, auto& o) { o.count = CountRule::bernoulli; }, "mntp: count: bernoulli draws single tokens");
  refused([](auto& c, auto&, auto&) { c.train.budget.steps = 0, c.train.budget.minutes = 1; },
          "mntp: initial_mlm_probability 0.3 changes to mlm_probability over the steps, epochs, words or tokens of "
          "train.budget, which "
          "has none of them; set one, or decay_steps, or set initial_mlm_probability to 0");
  refused([](auto&, auto& m, auto&) { m.embedding_size = 16; }, "or give mntp a transform");
  // On an encoder.
  auto encoder = tiny_run(dir, 10);
  MntpConfig mntp;
  encoder.objectives = {mntp, NspConfig{}};
  CHECK_NOTHROW(validate(encoder));
  encoder.objectives = {mntp, MlmConfig{}};
  CHECK_THROWS_WITH(validate(encoder), Catch::Contains("cannot be combined with mlm; keep one of them"));
  mntp.mask_special = true;
  encoder.objectives = {mntp};
  CHECK_THROWS_WITH(validate(encoder), Catch::Contains("mask_special may choose [CLS]"));
  // And in YAML.
  CHECK_THROWS_WITH(decode<RunConfig>(ConfigTree::parse("objectives: [{kind: mntp, causal_share: 1}]", "run.yaml")),
                    Catch::Contains("must be in [0, 1)"));
}

TEST_CASE("a hybrid is evaluated as mntp and clm, at any share of masked tokens", "[train][evaluation][mntp]") {
  TempDir dir;
  auto config = hybrid_run(dir, 10);
  const auto& named = resolved_evaluation(config).objectives;
  REQUIRE(named.size() == 2);
  CHECK(short_form(named[0]) == "mntp");
  CHECK(short_form(named[1]) == "clm");
  for (const std::string text : {"mntp", "mntp:0.3", "mntp,unit=word"})
    CHECK(short_form(parse_objective(text)) == text);
  CHECK(separate_losses(parse_objective("mntp,causal_share=0.5")).size() == 2);
  config.evaluation.objectives = {parse_objective("mntp:0.3"), parse_objective("clm")};
  CHECK_NOTHROW(validate(config));
  pretrain(config, {.run = dir / "run"});
  const auto run = open_run(dir / "run");
  const auto measures = held_out_measures(run.config, TokenStore(config.data.tokens, "valid"));
  REQUIRE(measures.size() == 2);
  const auto losses = evaluate(*run.network, measures, 7, at::kCPU),
             again = evaluate(*run.network, measures, 16, at::kCPU);
  REQUIRE(losses.size() == 2);
  for (size_t k = 0; k < 2; ++k) {
    CHECK(losses[k].name == measures[k].name);
    CHECK(losses[k].loss == Approx(again[k].loss).epsilon(1e-5));
    CHECK(losses[k].baseline->name == "unigram");
  }
  CHECK(static_cast<double>(losses[0].count) / static_cast<double>(losses[1].count) == Approx(0.3).margin(0.02));
}
