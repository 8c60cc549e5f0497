// Losses whose predictions have weights: means by these, in a step and in a held-out evaluation.
#include "models/initialization.h"
#include "objectives/mlm/mlm.h"
#include "objectives/network.h"
#include "evaluation/evaluate.h"
#include "tests/support/runs.h"
#include "train/stepper.h"

using namespace cloze;

namespace {

/// mlm where each prediction counts by a function of its label, as the weights of an objective do.
struct WeightedMlm final : Objective {
  WeightedMlm(std::shared_ptr<Objective> of_mlm, Tensor of_labels)
      : Objective(ObjectiveTerms{}), mlm(own("mlm", of_mlm)), table(std::move(of_labels)) {}

  Batch weighted(Batch batch) const {
    batch.weights = table.index_select(0, batch.labels);
    return batch;
  }
  std::string name() const override { return mlm->name(); }
  Tensor read_positions(const Batch& batch) const override { return mlm->read_positions(batch); }
  Cost cost(const Backbone& backbone, const std::vector<RowSizes>& rows) const override {
    return mlm->cost(backbone, rows);
  }
  std::vector<LossPart> parts(const Batch& batch) const override { return mlm->parts(weighted(batch)); }
  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    return mlm->losses(backbone, hidden, weighted(batch));
  }
  NetworkOutputs outputs(Backbone& backbone, const Tensor& hidden) override { return mlm->outputs(backbone, hidden); }

  std::shared_ptr<Objective> mlm;
  Tensor table;  // fp32 [V]
};

struct WeightedRun {
  /// Weights fp32 [V] of the labels; undefined: ones.
  WeightedRun(const TempDir& dir, const Tensor& weights) : config(tiny_run(dir, 1)) {
    config.objectives = {MlmConfig{}};
    config.train.precision = Precision::fp32;
    config.train.accumulation = 2;
    auto& model = transformer_of(config.model);
    model.hidden_dropout_prob = model.attention_probs_dropout_prob = 0;
    const TokenStore store(config.data.tokens, "train");
    model.vocab_size = store.tokenizer().size();
    collator = std::make_shared<Collator>(store, config.objectives, config.data, Rng(1), "train");
    network = std::make_shared<Network>(config.model, config.objectives);
    initialize(collect_params(*network), 0.3, false, Rng(1));
    if (weights.defined()) network->objectives[0] = std::make_shared<WeightedMlm>(network->objectives[0], weights);
  }
  std::vector<Batch> batches() const {
    return {collator->batch(0, config.train.batch_size),
            collator->batch(static_cast<uint64_t>(config.train.batch_size), config.train.batch_size)};
  }
  Stepper::Result step() {
    Stepper stepper(config, *network);
    return stepper.step(batches(), 0, 0);
  }

  RunConfig config;
  std::shared_ptr<Collator> collator;
  std::shared_ptr<Network> network;
};

Tensor some_weights() { return at::arange(21, at::kFloat).remainder(4) * 0.75; }  // of [V]; some are 0

/// The mean over all predictions of these batches by their weights, one by one from the logits.
double slow_mean(const WeightedRun& run, const Tensor& weights) {
  const at::NoGradGuard no_grad;
  run.network->eval();
  double sum = 0, all = 0;
  for (const auto& batch : run.batches()) {
    const auto hidden = run.network->backbone->hidden(batch);
    const auto logits =
        run.network->objectives[0]->outputs(*run.network->backbone, hidden)[0].second.flatten(0, 1).to(at::kDouble);
    for (int64_t i = 0; i < batch.labels.numel(); ++i) {
      const auto row = logits[batch.positions[i].item<int64_t>()];
      const auto label = batch.labels[i].item<int64_t>();
      const double weight = weights[label].item<double>();
      sum += weight * (at::logsumexp(row, {0}) - row[label]).item<double>();
      all += weight;
    }
  }
  return sum / all;
}

}  // namespace

TEST_CASE("the loss of a step is the mean by the weights of the predictions of all its micro-batches", "[train]") {
  const TempDir dir;
  const auto weights = some_weights();
  WeightedRun weighted(dir, weights), even(dir, {}), doubled(dir, at::full({21}, 2.0f));
  const double wanted = slow_mean(weighted, weights);
  CHECK(weighted.step().loss == Approx(wanted).epsilon(1e-5));
  const auto a = even.step(), b = doubled.step();
  CHECK(b.loss == Approx(a.loss).epsilon(1e-6));
  CHECK(b.grad_norm == Approx(a.grad_norm).epsilon(1e-5));
  CHECK(std::abs(a.loss - wanted) > 1e-3);
  REQUIRE(b.parts.size() == 1);
  CHECK(b.parts[0].count == a.parts[0].count);
  CHECK(b.parts[0].total_weight() == 2 * a.parts[0].total_weight());
}

TEST_CASE("a held-out loss is the mean by the weights of its predictions", "[train][evaluation]") {
  const TempDir dir;
  const auto weights = some_weights();
  const WeightedRun run(dir, weights), even(dir, {});
  const auto rows = 2 * run.config.train.batch_size;
  const auto losses = evaluate(*run.network, *run.collator, rows, run.config.train.batch_size, at::kCPU),
             plain = evaluate(*even.network, *even.collator, rows, run.config.train.batch_size, at::kCPU);
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].loss == Approx(slow_mean(run, weights)).epsilon(1e-5));
  CHECK(losses[0].count == plain[0].count);
  CHECK((losses[0].accuracy == plain[0].accuracy));
  double sum = 0, all = 0;
  for (const auto& sequence : losses[0].sequences) {
    sum += sequence.sum;
    all += sequence.count;
  }
  CHECK(losses[0].loss == Approx(sum / all));
}
