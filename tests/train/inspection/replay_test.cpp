// What another program needs besides ids and labels to take the steps of a run: orders and replacements.
#include "train/inspection/inspect.h"
#include "models/families/electra.h"
#include "models/families/xlnet.h"
#include "models/initialization.h"
#include "objectives/collator.h"
#include "objectives/kinds.h"
#include "objectives/network.h"
#include "run/run.h"
#include "run/training_rows.h"
#include "tests/support/catch.h"
#include "tests/support/objective.h"
#include "tests/support/tiny.h"
#include "train/training.h"
#include "train/stepper.h"

using namespace cloze;

namespace {

/// An ELECTRA without dropout over the tiny language, of two micro-batches a step.
RunConfig electra_run(const TempDir& dir, const std::string& rtd = "{kind: rtd}") {
  auto config = tiny_run(dir, 4);
  ElectraConfig model;
  model.hidden_size = 32, model.embedding_size = 16, model.num_hidden_layers = 1, model.num_attention_heads = 4,
  model.intermediate_size = 64, model.max_position_embeddings = 32,
  model.hidden_dropout_prob = model.attention_probs_dropout_prob = 0;
  config.model = model;
  config.objectives = {objective(rtd)};
  config.train.accumulation = 2;
  config.train.precision = Precision::fp32;  // as the passes beside the step
  return config;
}

/// The network of a run before its first step, and the batches of that step.
struct FirstStep {
  explicit FirstStep(const RunConfig& given)
      : store(given.data.tokens, "train"),
        config(resolved_config(given, store)),
        collator(text_rows(config, store, {})),
        network(config.model, config.objectives) {
    const auto& model = backbone_of(config.model);
    initialize(collect_params(network), model.initializer_range, is_truncated(model.initializer),
               rng_of(config.train, RandomStream::init));
    for (uint64_t micro = 0; micro < static_cast<uint64_t>(config.train.accumulation); ++micro)
      batches.push_back(
          collator.batch(micro * static_cast<uint64_t>(config.train.batch_size), config.train.batch_size));
  }
  TokenStore store;
  RunConfig config;
  Collator collator;
  Network network;
  std::vector<Batch> batches;
};

/// The replacements of a batch, whose first row is `first` of these examples.
Tensor replacements_of(const Batch& batch, const std::vector<InspectedExample>& examples, size_t first) {
  std::vector<int64_t> all;
  for (int64_t r = 0; r < batch.input_ids.size(0); ++r)
    for (const auto id : examples[first + static_cast<size_t>(r)].replacements) all.push_back(id);
  REQUIRE(static_cast<int64_t>(all.size()) == batch.positions.numel());
  return at::tensor(all, at::kLong);
}

double sum_of(const std::vector<LossPart>& parts, const std::string& name) {
  for (const auto& part : parts)
    if (part.name == name) return part.sum.item<double>();
  FAIL("no loss " << name);
  return 0;
}

}  // namespace

TEST_CASE("the replacements that inspect gives are those that the first step of training reads", "[inspect][rtd]") {
  TempDir dir;
  const auto given = electra_run(dir);
  const auto examples = inspect_objective(given, 16, 16).examples;
  FirstStep of_loss(given), of_rows(given);
  Stepper stepper(of_loss.config, of_loss.network);
  const auto trained = stepper.step(of_loss.batches, 0, 0);
  of_rows.network.train();
  double sum = 0;
  for (size_t micro = 0; micro < 2; ++micro) {
    auto batch = of_rows.batches[micro];
    const auto drawn = replacements_of(batch, examples, 8 * micro);
    const auto shape = batch.input_ids.sizes();
    batch.input_ids = batch.input_ids.flatten().index_put({batch.positions}, drawn).view(shape);
    batch.replaced = at::zeros_like(batch.input_ids)
                         .flatten()
                         .index_put({batch.positions}, drawn.ne(batch.labels).to(at::kLong))
                         .view(shape);
    sum += sum_of(of_rows.network.losses(batch, 1), "rtd");
  }
  CHECK(sum == Approx(sum_of(trained.parts, "rtd")).epsilon(1e-6));
}

TEST_CASE("a program with the generator's weights draws the same replacements from the numbers that inspect gives",
          "[inspect][rtd]") {
  TempDir dir;
  const auto given = electra_run(dir, "{kind: rtd, temperature: 0.7}");
  const auto examples = inspect_objective(given, 40, 40).examples;
  FirstStep first(given);
  const auto& rtd = *as<RtdConfig>(first.config.objectives[0]);
  Network generator(generator_of(rtd, first.config.model), {rtd.mlm});
  const at::NoGradGuard no_grad;
  for (const auto& [joint, own] : generator_params(first.network, generator)) own.value().copy_(joint.value());
  generator.eval();
  int64_t replaced = 0;
  for (size_t row = 0; row < 16; ++row) {
    const auto& e = examples[row];
    const auto logits =
        generator.outputs({.input_ids = at::tensor(e.input_ids, at::kLong).unsqueeze(0)}).back().second[0];
    const auto sums = at::softmax(logits.to(at::kDouble) / rtd.temperature, -1).cumsum(-1);
    size_t predictions = 0;
    for (size_t t = 0; t < e.labels.size(); ++t) {
      if (e.labels[t] == -100) continue;
      const double number = e.replacement_numbers.at(predictions);
      const auto drawn = sums[static_cast<int64_t>(t)].gt(number).to(at::kLong).argmax().item<int64_t>();
      CHECK(e.replacements.at(predictions++) == drawn);
      replaced += drawn != e.labels[t];
    }
    CHECK(e.replacement_numbers.size() == predictions);
  }
  CHECK(replaced > 10);
  // Weights are known before the first step only; the numbers of all steps are.
  CHECK((examples[16].replacements.empty() && !examples[16].replacement_numbers.empty()));
  const auto json = to_json(inspect_objective(given, 17, 17));
  const auto& row = json["examples"][0];
  CHECK(row["discriminator_labels"].size() == row["input_ids"].size());
  for (size_t t = 0; t < row["labels"].size(); ++t) {
    const bool chosen = row["labels"][t] != -100;
    CHECK((chosen || row["discriminator_input_ids"][t] == row["input_ids"][t]));
    CHECK((row["discriminator_labels"][t] == 1) == (chosen && row["discriminator_input_ids"][t] != row["labels"][t]));
  }
  CHECK_FALSE(json["examples"][16].contains("discriminator_labels"));
}

TEST_CASE("replacements without a generator are known in all rows, and there are none while a generator trains alone",
          "[inspect][rtd]") {
  TempDir dir;
  for (const auto& e : inspect_objective(electra_run(dir, "{kind: rtd, replace_by: uniform}"), 40, 40).examples)
    CHECK((!e.replacements.empty() && e.replacement_numbers.empty()));
  const auto staged = inspect_objective(electra_run(dir, "{kind: rtd, generator_steps: 1}"), 40, 40).examples;
  CHECK((staged[0].replacements.empty() && staged[0].replacement_numbers.empty()));
  CHECK((staged[16].replacements.empty() && !staged[16].replacement_numbers.empty()));
}

TEST_CASE("the ranks of a row of plm are the attention mask that the network reads, in either direction",
          "[inspect][plm]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  XlnetConfig model;
  model.hidden_size = 32, model.num_hidden_layers = 1, model.num_attention_heads = 2, model.intermediate_size = 64;
  model.bi_data = GENERATE(false, true);
  config.model = model;
  config.objectives = {objective("{kind: plm}")};
  config.data.packing = RowPacking::document;
  config.data.short_seq_prob = 0;
  const auto found = inspect_objective(config, 8, 8);
  const TokenStore store(config.data.tokens, "train");
  const auto batch = Collator(store, config.objectives, config.data, row_streams(config.train), "train", config.model,
                              training_rows(config.train, store))
                         .batch(0, 8);
  const auto width = batch.input_ids.size(1);
  const auto json = to_json(found)["examples"];
  for (size_t r = 0; r < 8; ++r) {
    const auto& e = found.examples[r];
    const auto length = static_cast<int64_t>(e.input_ids.size()), from = width - length;
    REQUIRE(e.query_rank.size() == e.input_ids.size());
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < length; ++j)
        REQUIRE(batch.visible[static_cast<int64_t>(r)][from + i][from + j].item<bool>() ==
                (e.query_rank[static_cast<size_t>(i)] > e.key_rank[static_cast<size_t>(j)]));
    // Each target sees those before it in the order, and none after it.
    const auto order = json[r]["order"].get<std::vector<size_t>>();
    CHECK(order.size() == static_cast<size_t>(e.labels.size() - std::ranges::count(e.labels, -100)));
    for (size_t a = 0; a < order.size(); ++a)
      for (size_t b = 0; b < order.size(); ++b) CHECK((e.query_rank[order[a]] > e.key_rank[order[b]]) == (b < a));
    CHECK(json[r]["backward"] == (model.bi_data && r % 2 == 1));
    CHECK(json[r]["continues"] == false);
  }
}
