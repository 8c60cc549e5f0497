// XLNet's mems, which rows carry from step to step.
#include "core/interrupt.h"
#include "core/tensor/safetensors.h"
#include "models/families/xlnet.h"
#include "tests/support/mems.h"
#include "tests/support/runs.h"
#include "train/inspection/inspect.h"
#include "run/device.h"
#include "train/loader.h"
#include "train/stepper.h"

using namespace cloze;
using nlohmann::json;

namespace {

/// A tiny XLNet as in the published code: segment pairs after reused tokens, mems, half of the rows backwards, two
/// micro-batches a step.
RunConfig run_with_mems(const TempDir& dir, int64_t steps) {
  auto config = tiny_run(dir, steps);
  carry_mems(config);
  auto& model = *as<XlnetConfig>(config.model);
  model.num_hidden_layers = 2;
  model.max_position_embeddings = XlnetConfig().max_position_embeddings;
  config.train.batch_size = 4;
  config.train.accumulation = 2;
  return config;
}

void without_dropout(RunConfig& config) {
  config.train.precision = Precision::fp32;
  auto& model = transformer_of(config.model);
  model.hidden_dropout_prob = model.attention_probs_dropout_prob = model.activation_dropout = 0;
}

/// The parts of a pretraining run, for steps taken by the test.
struct ManualRun {
  explicit ManualRun(const RunConfig& given)
      : config(given),
        store(config.data.tokens, "train"),
        collator(store, config.objectives, config.data, Rng(1), "train", config.model,
                 {config.train.batch_size, config.train.accumulation}) {
    backbone_of(config.model).vocab_size = store.tokenizer().size();
    network = std::make_shared<Network>(config.model, config.objectives);
    initialize(collect_params(*network), 0.3, false, Rng(1));
    stepper = std::make_unique<Stepper>(config, *network);
  }
  /// The batches of step `step`, counted from 0.
  std::vector<Batch> batches(uint64_t step) const {
    std::vector<Batch> micro_batches;
    const auto rows = static_cast<uint64_t>(config.train.batch_size),
               micro = static_cast<uint64_t>(config.train.accumulation);
    for (uint64_t m = 0; m < micro; ++m)
      micro_batches.push_back(collator.batch((step * micro + m) * rows, config.train.batch_size));
    return micro_batches;
  }
  /// The loss of these batches with the given mems; `read` receives the inputs of the layers [micro-batch][layer]
  /// [B, T, D].
  double loss_with_mems(std::vector<Batch> given, const std::vector<std::vector<Tensor>>& mems,
                        std::vector<std::vector<Tensor>>* read = nullptr) {
    at::NoGradGuard no_grad;
    double sum = 0, count = 0;
    for (size_t m = 0; m < given.size(); ++m) {
      given[m].mems = mems.empty() ? std::vector<Tensor>() : mems[m];
      const auto part = network->losses(given[m], 0)[0];
      sum += part.sum.item<double>();
      count += static_cast<double>(part.count);
      if (!read) continue;
      Traces traces;
      network->backbone->hidden({.input_ids = given[m].input_ids,
                                 .token_type_ids = given[m].token_type_ids,
                                 .visible = given[m].visible,
                                 .backward = given[m].backward,
                                 .mems = given[m].mems},
                                &traces);
      traces.encoder.hidden_states.pop_back();  // output of the last layer: not an input
      read->push_back(traces.encoder.hidden_states);
    }
    return sum / count;
  }

  RunConfig config;
  TokenStore store;
  Collator collator;
  std::shared_ptr<Network> network;
  std::unique_ptr<Stepper> stepper;
};

}  // namespace

TEST_CASE(
    "every batch of a step attends to mems: the last mem_len states of the first reuse_len tokens of its rows in the "
    "steps before",
    "[train][mems]") {
  TempDir dir;
  auto config = run_with_mems(dir, 1);
  without_dropout(config);
  const auto packing = GENERATE(RowPacking::segment_pair, RowPacking::full);
  config.data.packing = packing;
  ManualRun run(config);
  std::vector<std::vector<Tensor>> kept(
      2, std::vector<Tensor>(2, at::zeros({4, 20, 32})));  // an epoch begins with zeros, which may be attended to
  for (uint64_t step = 0; step < 5; ++step) {
    const auto batches = run.batches(step);
    CHECK(batches[1].continues == (step > 0));
    std::vector<std::vector<Tensor>> read;
    const double expected = run.loss_with_mems(batches, kept, &read), without = run.loss_with_mems(batches, {});
    CHECK(run.stepper->step(batches, static_cast<int64_t>(step), 0).loss == Approx(expected).epsilon(1e-5));
    CHECK(std::abs(expected - without) > 1e-3);
    for (size_t m = 0; m < 2; ++m)
      for (size_t layer = 0; layer < 2; ++layer)
        kept[m][layer] = at::cat({kept[m][layer], read[m][layer].narrow(1, 0, 12)}, 1).narrow(1, 12, 20);
    const auto saved = run.stepper->mems();
    REQUIRE(saved.size() == 4);
    for (const auto& [name, tensor] : saved) {
      const auto m = static_cast<size_t>(name[7] - '0'), layer = static_cast<size_t>(name[9] - '0');
      CHECK(name == concat("memory.", m, ".", layer));
      CHECK((tensor - kept[m][layer]).abs().max().item<double>() < 1e-4);
    }
  }
}

TEST_CASE("the mems are zeros at the start of a text and after a step without update", "[train][mems]") {
  TempDir dir;
  auto config = run_with_mems(dir, 1);
  without_dropout(config);
  ManualRun run(config);
  const std::vector<std::vector<Tensor>> zeros(2, std::vector<Tensor>(2, at::zeros({4, 20, 32})));
  const auto loss_of = [&](uint64_t step) { return run.stepper->step(run.batches(step), 0, 0).loss; };
  const uint64_t epoch = run.collator.size() / 8;
  loss_of(epoch - 2);
  CHECK(loss_of(epoch - 1) != Approx(run.loss_with_mems(run.batches(epoch - 1), zeros)).epsilon(1e-4));
  CHECK(loss_of(epoch) == Approx(run.loss_with_mems(run.batches(epoch), zeros)).epsilon(1e-5));
  const auto weight = collect_params(*run.network)[0].param.value().detach();
  const auto before = weight.clone();
  weight.fill_(std::nan(""));
  CHECK_FALSE(run.stepper->step(run.batches(epoch + 1), 0, 0).finite);
  CHECK(run.stepper->mems().empty());
  weight.copy_(before);
  CHECK(loss_of(epoch + 2) == Approx(run.loss_with_mems(run.batches(epoch + 2), zeros)).epsilon(1e-5));
  CHECK(loss_of(epoch + 3) != Approx(run.loss_with_mems(run.batches(epoch + 3), zeros)).epsilon(1e-4));
  // Held-out evaluation neither uses nor changes the mems of training.
  const Collator held_out(run.store, config.objectives, config.data, Rng(1), "valid", config.model);
  const auto kept = run.stepper->mems();
  const auto first = evaluate(*run.network, held_out, 10, 4, at::kCPU)[0].loss;
  loss_of(epoch + 4);
  CHECK(evaluate(*run.network, held_out, 10, 4, at::kCPU)[0].loss == first);
  double sum = 0, count = 0;
  run.network->eval();
  for (int64_t at = 0; at < 10; at += 4) {
    at::NoGradGuard no_grad;
    const auto part =
        run.network->losses(held_out.batch(static_cast<uint64_t>(at), std::min<int64_t>(4, 10 - at)), 0)[0];
    sum += part.sum.item<double>();
    count += static_cast<double>(part.count);
  }
  CHECK(first == Approx(sum / count));
}

TEST_CASE("a step that a signal ends between its micro-batches leaves nothing, and is made again to the same bits",
          "[train][mems][resume]") {
  TempDir dir;
  const auto config = run_with_mems(dir, 1);
  ManualRun run(config), other(config);
  const auto is_cut = [&](uint64_t step) {
    interrupts().requested = true;
    const auto result = run.stepper->step(run.batches(step), static_cast<int64_t>(step), 0.01);
    interrupts().requested = false;
    return !result.complete;
  };
  CHECK(is_cut(0));
  CHECK(run.stepper->mems().empty());
  for (uint64_t step = 0; step < 3; ++step) {
    for (const auto* one : {&run, &other}) {
      const auto result = one->stepper->step(one->batches(step), static_cast<int64_t>(step), 0.01);
      CHECK(result.complete);
    }
    CHECK(is_cut(step + 1));
  }
  const auto found = collect_params(*run.network), wanted = collect_params(*other.network);
  for (size_t i = 0; i < wanted.size(); ++i) {
    INFO(wanted[i].name);
    CHECK(at::equal(found[i].param.value(), wanted[i].param.value()));
  }
  const auto mems = run.stepper->mems(), wanted_mems = other.stepper->mems();
  REQUIRE(mems.size() == wanted_mems.size());
  for (size_t i = 0; i < mems.size(); ++i) CHECK(at::equal(mems[i].second, wanted_mems[i].second));
}

TEST_CASE("mems can be restored only with the shape that they were saved with", "[train][mems]") {
  TempDir dir;
  const auto config = run_with_mems(dir, 1);
  ManualRun run(config), other(config);
  run.stepper->step(run.batches(0), 0, 0);
  const auto saved = run.stepper->mems();
  other.stepper->load_mems(saved);
  CHECK(other.stepper->mems().size() == 4);
  auto wide = config;
  wide.train.batch_size = 8;
  ManualRun wider(wide);
  CHECK_THROWS_WITH(wider.stepper->load_mems(saved),
                    "the checkpoint has 4 tensors of mems, of which 0 fit the 4 of this config; it is damaged: resume "
                    "from an earlier checkpoint");
  CHECK(wider.stepper->mems().empty());
  wider.stepper->load_mems({});
  CHECK(run.stepper->checkpoint_bytes() ==
        12 * run.stepper->parameters() +
            (has_fast_bf16(at::kCPU) && config.train.precision == Precision::bf16 ? 2 : 4) * 4 * 4 * 20 * 32);
  pretrain(config, {.run = dir / "run"});
  wide.train.budget.steps = 2;
  pretrain(wide, {.run = dir / "run", .resume = true, .overwrite_config = true});
  CHECK_THAT(read_file(dir / "run/log.txt"),
             Catch::Contains(
                 "config or data have changed, so rows may not continue the previous ones; the mems start from zero"));
  const auto bert = tiny_run(dir, 1);
  ManualRun without_mems(bert);
  without_mems.stepper->step(without_mems.batches(0), 0, 0);
  CHECK(without_mems.stepper->mems().empty());
  without_mems.stepper->load_mems({});
  CHECK_THROWS_AS(without_mems.stepper->load_mems(saved), CheckpointError);
}

TEST_CASE("rows with mems come in the same order for any number of workers", "[train][mems]") {
  TempDir dir;
  const ManualRun run(run_with_mems(dir, 1));
  const auto make = [&](uint64_t n) { return run.collator.step_batches(4 * n, 4); };
  Loader one(make, 3, 1), many(make, 3, 5);
  for (uint64_t n = 3; n < 40; ++n) {
    const auto a = one.next().at(0), b = many.next().at(0), expected = make(n).at(0);
    CHECK(at::equal(a.input_ids, expected.input_ids));
    CHECK(at::equal(b.input_ids, expected.input_ids));
    CHECK(at::equal(b.visible, expected.visible));
    CHECK(b.continues == expected.continues);
  }
}

TEST_CASE("processes that train together have the batches of a step in turn", "[train][mems]") {
  TempDir dir;
  const ManualRun run(run_with_mems(dir, 1));
  const auto make = [&](uint64_t n) { return run.collator.step_batches(4 * n, 4); };
  Loader alone(make, 4, 1), first(make, 4, 2, {.of_step = 2, .own = {0, 1}}),
      second(make, 4, 1, {.of_step = 2, .own = {1, 2}});
  for (int step = 0; step < 9; ++step)
    for (auto* loader : {&first, &second})
      CHECK(at::equal(loader->next().at(0).input_ids, alone.next().at(0).input_ids));
}

TEST_CASE("an XLNet with mems learns the language, and after a kill and a resume it ends with the same bits",
          "[train][learning][resume][mems]") {
  TempDir dir;
  auto config = run_with_mems(dir, 160);
  config.evaluation.every = 40;
  config.checkpoint.every = 9;
  check_killed_run(config, dir, "step-00000063", "step-00000160",
                   {"weights.safetensors", "optimizer.safetensors", "memory.safetensors"});
  CHECK(SafeTensors::open(dir / "a/step-00000160/memory.safetensors").get("memory.1.1").sizes() ==
        at::IntArrayRef({4, 20, 32}));
  const auto summary = json::parse(read_file(dir / "a/summary.json"));
  CHECK(summary["held_out_loss"].get<double>() < 0.9 * summary["unigram_loss"].get<double>());
}

TEST_CASE("invalid settings for rows of permutation language modelling are rejected with a clear message", "[train]") {
  TempDir dir;
  const auto good = run_with_mems(dir, 2);
  CHECK_NOTHROW(validate(good));
  const auto refused = [&](const auto& change, const std::string& reason) {
    auto config = good;
    change(config, *as<XlnetConfig>(config.model));
    CHECK_THROWS_WITH(validate(config), reason);
  };
  refused(
      [](auto& c, auto&) { c.train.batch_size = 7; },
      "model.bi_data reverses half of the rows of a batch, and train.batch_size 7 is odd; make it even, or set bi_data "
      "to false");
  refused([](auto&, auto& m) { m.reuse_len = 0; },
          "model.mem_len 20 carries the first model.reuse_len tokens of a row to the next one, and that is 0; give it "
          "1 to 27 (data.max_seq_length - 5), or set mem_len to 0");
  refused([](auto&, auto& m) { m.reuse_len = 28; },
          "model.mem_len 20 carries the first model.reuse_len tokens of a row to the next one, and that is 28; give it "
          "1 to 27 (data.max_seq_length - 5), or set mem_len to 0");
  refused([](auto& c, auto&) { c.data.packing = RowPacking::document; },
          "model.mem_len 20 needs rows that continue the rows of the step before, and data.packing is document; choose "
          "full or "
          "segment_pair, or set mem_len to 0");
  refused(
      [](auto& c, auto& m) { c.data.packing = RowPacking::sentence_pair, m.mem_len = 0; },
      "objective plm does not support data.packing sentence_pair; choose segment_pair, or a packing of one segment");
  refused([](auto& c, auto& m) { c.data.short_seq_prob = 0.1, m.mem_len = 0; },
          "rows of plm with mems or with pairs have a fixed length, and data.short_seq_prob is 0.1; set it to 0");
  refused([](auto&, auto& m) { m.attn_type = AttentionDirection::uni, m.same_length = true, m.mem_len = 0; },
          "model.same_length needs mems, and model.mem_len 0 keeps none in training; raise mem_len, or set same_length "
          "to false");
  auto longest = good;
  as<XlnetConfig>(longest.model)->reuse_len = 27;
  longest.train.budget.steps = 1;
  CHECK(pretrain(longest, {.run = dir / "longest"}).steps == 1);  // A and B have a token each
}

TEST_CASE("inspect shows the rows that training uses, with pairs, mems and backward text", "[train][inspect]") {
  TempDir dir;
  const auto config = run_with_mems(dir, 1);
  const auto found = inspect_objective(config, 12, 30);
  CHECK(found.facts["sequences"] == 30);
  CHECK(found.facts["special_tokens_predicted"] == 0);
  CHECK(found.facts["padding_share"] == 0);
  CHECK(found.facts["predicted_share"].get<double>() == Approx(5.0 / 32).margin(0.03));
  const TokenStore store(config.data.tokens, "train");
  const Collator collator(store, config.objectives, config.data, Rng(static_cast<uint64_t>(config.train.seed)), "train",
                          config.model, {4, 2});
  for (size_t i = 0; i < 12; ++i) {
    const auto batch = collator.batch(4 * (i / 4), 4);
    const auto row = batch.input_ids[static_cast<int64_t>(i % 4)].contiguous();
    CHECK(found.examples[i].input_ids == std::vector<int64_t>(row.data_ptr<int64_t>(), row.data_ptr<int64_t>() + 32));
    CHECK(found.examples[i].token_type_ids.back() == 2);
  }
}
