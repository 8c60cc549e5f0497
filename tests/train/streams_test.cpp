// The random streams of a run: cut apart exactly, and the same for arms of one seed.
#include "core/tensor/safetensors.h"
#include "models/families/xlnet.h"
#include "objectives/collator.h"
#include "tests/support/runs.h"

using namespace cloze;

namespace {

/// The ids of a batch before they were masked.
Tensor original(const Batch& batch) {
  auto ids = batch.input_ids.flatten().clone();
  ids.index_put_({batch.positions}, batch.labels);
  return ids;
}

Batch first_batch(const RunConfig& config) {
  const TokenStore store(config.data.tokens, "train");
  return Collator(store, config.objectives, config.data, row_streams(config.train), "train", config.model).batch(0, 8);
}

/// The weights before the first update.
std::map<std::string, Tensor> initial(RunConfig config, const std::string& run) {
  config.train.budget.steps = 1;
  config.optimizer.learning_rate = 0;
  pretrain(config, {.run = run});
  const auto file = SafeTensors::open(run + "/step-00000001/weights.safetensors");
  std::map<std::string, Tensor> tensors;
  for (const auto& name : file.names()) tensors.emplace(name, file.get(name));
  return tensors;
}

bool all_equal(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
  return std::all_of(a.begin(), a.end(), [&](const auto& one) { return at::equal(one.second, b.at(one.first)); });
}

double first_loss(const std::string& run) { return metrics(run).at(0).at("loss").get<double>(); }

}  // namespace

TEST_CASE("without seeds of their own all streams have that of the run, to the bit", "[train][streams]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  config.objectives = {default_objective<MlmConfig>()};
  config.train.seed = 5;
  const TokenStore store(config.data.tokens, "train");
  const auto plain = Collator(store, config.objectives, config.data, Rng(5), "train", config.model).batch(0, 8);
  CHECK(at::equal(first_batch(config).input_ids, plain.input_ids));
  auto apart = config;
  apart.train.seed = 1;
  apart.train.seeds = {.init = 5, .order = 5, .masking = 5, .dropout = 5};
  apart.train.budget.steps = config.train.budget.steps = 6;
  pretrain(config, {.run = dir / "one"});
  pretrain(apart, {.run = dir / "four"});
  CHECK(metrics(dir / "one") == metrics(dir / "four"));
  CHECK(same_files(dir / "one/step-00000006/weights.safetensors", dir / "four/step-00000006/weights.safetensors"));
}

TEST_CASE("each stream changes what is its own and nothing else", "[train][streams]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  config.objectives = {default_objective<MlmConfig>()};
  const auto rows = first_batch(config);
  const auto weights = initial(config, dir / "base");
  const auto with = [&](int64_t SeedsConfig::* stream) {
    auto other = config;
    other.train.seeds.*stream = 9;
    return other;
  };
  const auto reordered = first_batch(with(&SeedsConfig::order));
  CHECK_FALSE(at::equal(original(reordered), original(rows)));
  const auto masked = first_batch(with(&SeedsConfig::masking));
  CHECK(at::equal(original(masked), original(rows)));
  CHECK_FALSE(at::equal(masked.positions, rows.positions));
  for (const auto stream : {&SeedsConfig::init, &SeedsConfig::dropout})
    CHECK(at::equal(first_batch(with(stream)).input_ids, rows.input_ids));
  CHECK_FALSE(all_equal(weights, initial(with(&SeedsConfig::init), dir / "init")));
  CHECK(all_equal(weights, initial(with(&SeedsConfig::order), dir / "order")));
  CHECK(all_equal(weights, initial(with(&SeedsConfig::masking), dir / "masking")));
  CHECK(all_equal(weights, initial(with(&SeedsConfig::dropout), dir / "dropout")));
  CHECK(first_loss(dir / "dropout") != first_loss(dir / "base"));  // same weights, rows and masks
}

TEST_CASE("segment pairs and the chunks of permuted rows belong to the order, not to the masking", "[train][streams]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  const auto pairs = first_batch(config);  // mlm and nsp
  config.train.seeds.masking = 9;
  CHECK(at::equal(original(first_batch(config)), original(pairs)));
  CHECK(at::equal(first_batch(config).pair_label, pairs.pair_label));
  XlnetConfig xlnet;
  xlnet.hidden_size = 32, xlnet.num_hidden_layers = 1, xlnet.num_attention_heads = 2, xlnet.intermediate_size = 64;
  config.model = xlnet;
  config.objectives = {default_objective<PlmConfig>()};
  config.data.packing = RowPacking::segment_pair;
  const auto other = first_batch(config);
  config.train.seeds.masking = -1;
  CHECK(at::equal(first_batch(config).input_ids, other.input_ids));
  config.train.seeds.order = 9;
  CHECK_FALSE(at::equal(first_batch(config).input_ids, other.input_ids));
}

TEST_CASE("arms of one seed share rows, masks, dropout and first weights as far as names and shapes agree",
          "[train][streams]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  config.objectives = {default_objective<MlmConfig>()};
  const auto base = initial(config, dir / "base");
  auto decayed = config;
  decayed.optimizer.weight_decay = 0.3;
  CHECK(all_equal(base, initial(decayed, dir / "decayed")));
  CHECK(first_loss(dir / "decayed") == first_loss(dir / "base"));  // so that dropout is the same too
  auto deeper = config, paired = config;
  backbone_of(deeper.model).num_hidden_layers = 3;
  transformer_of(deeper.model).intermediate_size = 48;
  paired.objectives = {default_objective<MlmConfig>(), default_objective<NspConfig>()};
  CHECK(at::equal(original(first_batch(deeper)), original(first_batch(config))));
  CHECK(at::equal(first_batch(deeper).positions, first_batch(config).positions));
  size_t shared = 0, matrices = 0;
  for (const auto& [run, arm] : {std::pair{"deeper", deeper}, std::pair{"paired", paired}})
    for (const auto& [name, value] : initial(arm, dir / run)) {
      const auto same = base.find(name);
      if (same == base.end() || same->second.sizes() != value.sizes()) continue;
      INFO(run << " " << name);
      CHECK(at::equal(value, same->second));
      ++shared;
      matrices += value.dim() == 2;
    }
  CHECK(shared > 20);
  CHECK(matrices > 8);
}
