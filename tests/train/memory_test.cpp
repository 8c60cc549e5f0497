// What XLNet's rows remember from step to step.
#include "core/tensor/safetensors.h"
#include "tests/support/runs.h"
#include "analysis/inspect.h"
#include "train/loader.h"

using namespace cloze;
using nlohmann::json;

namespace {

/// A tiny XLNet as in the published code: pairs behind a reused part, a memory, half of the rows backwards, two batches
/// a step.
RunConfig remembering_run(const TempDir& dir, int64_t steps) {
  auto config = tiny_run(dir, steps);
  XlnetConfig model;
  model.hidden_size = 32, model.num_hidden_layers = 2, model.num_attention_heads = 2, model.intermediate_size = 64;
  model.mem_len = 20, model.reuse_len = 12, model.bi_data = true;
  config.model = model, config.objectives = {PlmConfig{}};
  config.data.packing = RowPacking::segment_pair, config.data.short_seq_prob = 0;
  config.train.batch_size = 4, config.train.accumulation = 2;
  return config;
}

void without_chance(RunConfig& config) {
  config.train.precision = Precision::fp32;
  auto& model = backbone_of(config.model);
  model.hidden_dropout_prob = model.attention_probs_dropout_prob = model.activation_dropout = 0;
}

/// What pretraining builds of a config, for steps taken by hand.
struct ByHand {
  explicit ByHand(const RunConfig& given)
      : config(given),
        store(config.data.tokens, "train"),
        collator(store, config.objectives, config.data, Rng(1), "train", config.model,
                 {config.train.batch_size, config.train.accumulation}) {
    backbone_of(config.model).vocab_size = store.tokenizer().size();
    network = std::make_shared<Network>(config.model, config.objectives);
    initialize(collect_params(*network), 0.3, false, Rng(1));
    stepper = std::make_unique<Stepper>(config, *network);
  }
  /// The batches of step `step`, counted from the first sequence.
  std::vector<Batch> batches(uint64_t step) const {
    std::vector<Batch> made;
    const auto rows = static_cast<uint64_t>(config.train.batch_size),
               micro = static_cast<uint64_t>(config.train.accumulation);
    for (uint64_t m = 0; m < micro; ++m)
      made.push_back(collator.batch((step * micro + m) * rows, config.train.batch_size));
    return made;
  }
  /// The loss of these batches behind given memories, and what layers read of them [layer][B, T, D].
  double loss_behind(std::vector<Batch> given, const std::vector<std::vector<Tensor>>& memories,
                     std::vector<std::vector<Tensor>>* read = nullptr) {
    at::NoGradGuard no_grad;
    double sum = 0, count = 0;
    for (size_t m = 0; m < given.size(); ++m) {
      given[m].memories = memories.empty() ? std::vector<Tensor>() : memories[m];
      const auto part = network->losses(given[m], 0)[0];
      sum += part.sum.item<double>(), count += static_cast<double>(part.count);
      if (!read) continue;
      Traces traces;
      network->backbone->hidden({.input_ids = given[m].input_ids,
                                 .token_type_ids = given[m].token_type_ids,
                                 .visible = given[m].visible,
                                 .backward = given[m].backward,
                                 .memories = given[m].memories},
                                &traces);
      traces.encoder.hidden_states.pop_back();  // behind the last layer: nothing reads it
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
    "every batch of a step is read behind the last mem_len states that the first reuse_len tokens of its rows gave "
    "before",
    "[train][memory]") {
  TempDir dir;
  auto config = remembering_run(dir, 1);
  without_chance(config);
  const auto packing = GENERATE(RowPacking::segment_pair, RowPacking::full);
  config.data.packing = packing;
  ByHand run(config);
  std::vector<std::vector<Tensor>> kept(
      2, std::vector<Tensor>(2, at::zeros({4, 20, 32})));  // an epoch begins with zeros, which may be seen
  for (uint64_t step = 0; step < 5; ++step) {
    const auto batches = run.batches(step);
    CHECK(batches[1].continues == (step > 0));
    std::vector<std::vector<Tensor>> read;
    const double wanted = run.loss_behind(batches, kept, &read), without = run.loss_behind(batches, {});
    CHECK(run.stepper->step(batches, static_cast<int64_t>(step), 0).loss == Approx(wanted).epsilon(1e-5));
    CHECK(std::abs(wanted - without) > 1e-3);
    for (size_t m = 0; m < 2; ++m)
      for (size_t layer = 0; layer < 2; ++layer)
        kept[m][layer] = at::cat({kept[m][layer], read[m][layer].narrow(1, 0, 12)}, 1).narrow(1, 12, 20);
    const auto saved = run.stepper->memories();
    REQUIRE(saved.size() == 4);
    for (const auto& [name, tensor] : saved) {
      const auto m = static_cast<size_t>(name[7] - '0'), layer = static_cast<size_t>(name[9] - '0');
      CHECK(name == words("memory.", m, ".", layer));
      CHECK((tensor - kept[m][layer]).abs().max().item<double>() < 1e-4);
    }
  }
}

TEST_CASE("rows that begin a text, and those behind a step without update, are read behind zeros", "[train][memory]") {
  TempDir dir;
  auto config = remembering_run(dir, 1);
  without_chance(config);
  ByHand run(config);
  const std::vector<std::vector<Tensor>> zeros(2, std::vector<Tensor>(2, at::zeros({4, 20, 32})));
  const auto loss_of = [&](uint64_t step) { return run.stepper->step(run.batches(step), 0, 0).loss; };
  const uint64_t epoch = run.collator.size() / 8;
  loss_of(epoch - 2);
  CHECK(loss_of(epoch - 1) != Approx(run.loss_behind(run.batches(epoch - 1), zeros)).epsilon(1e-4));
  CHECK(loss_of(epoch) == Approx(run.loss_behind(run.batches(epoch), zeros)).epsilon(1e-5));
  const auto weight = collect_params(*run.network)[0].param.value().detach();
  const auto before = weight.clone();
  weight.fill_(std::nan(""));
  CHECK_FALSE(run.stepper->step(run.batches(epoch + 1), 0, 0).finite);
  CHECK(run.stepper->memories().empty());
  weight.copy_(before);
  CHECK(loss_of(epoch + 2) == Approx(run.loss_behind(run.batches(epoch + 2), zeros)).epsilon(1e-5));
  CHECK(loss_of(epoch + 3) != Approx(run.loss_behind(run.batches(epoch + 3), zeros)).epsilon(1e-4));
  // Held-out text neither reads what training remembers nor changes it.
  const Collator held_out(run.store, config.objectives, config.data, Rng(1), "valid", config.model);
  const auto kept = run.stepper->memories();
  const auto first = evaluate(*run.network, held_out, 10, 4, at::kCPU)[0].loss;
  loss_of(epoch + 4);
  CHECK(evaluate(*run.network, held_out, 10, 4, at::kCPU)[0].loss == first);
  double sum = 0, count = 0;
  run.network->eval();
  for (int64_t at = 0; at < 10; at += 4) {
    at::NoGradGuard no_grad;
    const auto part =
        run.network->losses(held_out.batch(static_cast<uint64_t>(at), std::min<int64_t>(4, 10 - at)), 0)[0];
    sum += part.sum.item<double>(), count += static_cast<double>(part.count);
  }
  CHECK(first == Approx(sum / count));
}

TEST_CASE("memories fit the shape that they were saved with, and no other", "[train][memory]") {
  TempDir dir;
  const auto config = remembering_run(dir, 1);
  ByHand run(config), other(config);
  run.stepper->step(run.batches(0), 0, 0);
  const auto saved = run.stepper->memories();
  other.stepper->load_memories(saved);
  CHECK(other.stepper->memories().size() == 4);
  auto wide = config;
  wide.train.batch_size = 8;
  ByHand wider(wide);
  CHECK_THROWS_WITH(wider.stepper->load_memories(saved),
                    "the checkpoint remembers 4 tensors, of which 0 fit the 4 that the rows of a step carry; it is "
                    "damaged: resume from an earlier one");
  CHECK(wider.stepper->memories().empty());
  wider.stepper->load_memories({});
  CHECK(run.stepper->checkpoint_bytes() ==
        12 * run.stepper->parameters() +
            (has_fast_bf16(at::kCPU) && config.train.precision == Precision::bf16 ? 2 : 4) * 4 * 4 * 20 * 32);
  pretrain(config, {.run = dir / "run"});
  wide.train.budget.steps = 2;
  pretrain(wide, {.run = dir / "run", .resume = true, .overwrite_config = true});
  CHECK_THAT(
      read_file(dir / "run/log.txt"),
      Catch::Contains(
          "config or data are others now, so that rows may not go on where these ended: their memory begins anew"));
  const auto bert = tiny_run(dir, 1);
  ByHand forgetful(bert);
  forgetful.stepper->step(forgetful.batches(0), 0, 0);
  CHECK(forgetful.stepper->memories().empty());
  forgetful.stepper->load_memories({});
  CHECK_THROWS_AS(forgetful.stepper->load_memories(saved), CheckpointError);
}

TEST_CASE("workers give rows that carry a memory in one order, however many they are", "[train][memory]") {
  TempDir dir;
  const ByHand run(remembering_run(dir, 1));
  const auto make = [&](uint64_t n) { return run.collator.batch(4 * n, 4); };
  Loader one(make, 3, 1), many(make, 3, 5);
  for (uint64_t n = 3; n < 40; ++n) {
    const auto a = one.next(), b = many.next(), wanted = make(n);
    CHECK(at::equal(a.input_ids, wanted.input_ids));
    CHECK(at::equal(b.input_ids, wanted.input_ids));
    CHECK(at::equal(b.visible, wanted.visible));
    CHECK(b.continues == wanted.continues);
  }
}

TEST_CASE("an XLNet with a memory learns the language, and killed and resumed it ends with the same bits",
          "[train][learning][resume][memory]") {
  TempDir dir;
  auto config = remembering_run(dir, 160);
  config.evaluation.every = 40, config.checkpoint.every = 9;
  check_killed_run(config, dir, "step-00000063", "step-00000160",
                   {"weights.safetensors", "optimizer.safetensors", "memory.safetensors"});
  CHECK(SafeTensors::open(dir / "a/step-00000160/memory.safetensors").get("memory.1.1").sizes() ==
        at::IntArrayRef({4, 20, 32}));
  const auto summary = json::parse(read_file(dir / "a/summary.json"));
  CHECK(summary["held_out_loss"].get<double>() < 0.9 * summary["unigram_loss"].get<double>());
}

TEST_CASE("rows of permutation language modelling that cannot be made are refused in words", "[train]") {
  TempDir dir;
  const auto good = remembering_run(dir, 2);
  CHECK_NOTHROW(validate(good));
  const auto refused = [&](const auto& change, const std::string& reason) {
    auto config = good;
    change(config, std::get<XlnetConfig>(config.model));
    CHECK_THROWS_WITH(validate(config), reason);
  };
  refused([](auto& c, auto&) { c.train.batch_size = 7; },
          "model.bi_data lets half of a batch run backwards, train.batch_size 7 is odd; make it even, or set bi_data "
          "to false");
  refused([](auto&, auto& m) { m.reuse_len = 0; },
          "model.mem_len 20 carries the first model.reuse_len tokens of a row to the next one, and that is 0; give it "
          "1 to 27 (data.max_seq_length - 5), or set mem_len to 0");
  refused([](auto&, auto& m) { m.reuse_len = 28; },
          "model.mem_len 20 carries the first model.reuse_len tokens of a row to the next one, and that is 28; give it "
          "1 to 27 (data.max_seq_length - 5), or set mem_len to 0");
  refused([](auto& c, auto&) { c.data.packing = RowPacking::document; },
          "model.mem_len 20 needs rows that go on where others stopped, data.packing is document; choose full or "
          "segment_pair, or set mem_len to 0");
  refused([](auto& c, auto& m) { c.data.packing = RowPacking::sentence_pair, m.mem_len = 0; },
          "data.packing sentence_pair is not for plm; choose segment_pair, or rows of one text");
  refused([](auto& c, auto& m) { c.data.short_seq_prob = 0.1, m.mem_len = 0; },
          "rows of plm with a memory or with pairs have one length, data.short_seq_prob is 0.1; set it to 0");
  refused([](auto&, auto& m) { m.attn_type = AttentionDirection::uni, m.same_length = true, m.mem_len = 0; },
          "model.same_length counts a memory, and model.mem_len 0 keeps none in training; raise it, or set same_length "
          "to false");
  auto longest = good;
  std::get<XlnetConfig>(longest.model).reuse_len = 27;
  longest.train.budget.steps = 1;
  CHECK(pretrain(longest, {.run = dir / "longest"}).steps == 1);  // A and B have a token each
}

TEST_CASE("inspect reads the rows that training reads, with pairs, a memory and texts that run backwards",
          "[train][inspect]") {
  TempDir dir;
  const auto config = remembering_run(dir, 1);
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
