// Probes: heads on a backbone that stays as it is.
#include "core/tensor/safetensors.h"
#include "models/families/electra.h"
#include "tests/support/runs.h"

using namespace cloze;

namespace {

/// A discriminator after `steps` steps.
RunConfig discriminator(const TempDir& dir, int64_t steps) {
  auto config = tiny_run(dir, steps);
  auto model = tiny_model<ElectraConfig>();
  model.embedding_size = 24;
  config.model = model;
  config.objectives = {default_objective<RtdConfig>()};
  return config;
}

}  // namespace

TEST_CASE("a probe trains a new head for mlm on a discriminator, whose backbone does not move", "[train][probe]") {
  TempDir dir;
  const auto base = discriminator(dir, 300);
  pretrain(base, {.run = dir / "rtd"});
  auto probe = base;
  probe.init = {.from = dir / "rtd", .probe = true};
  probe.objectives = {default_objective<MlmConfig>()};
  probe.train.budget.steps = 200;
  probe.optimizer.learning_rate = 1e-2;
  const auto report = pretrain(probe, {.run = dir / "probe"});
  CHECK(report.held_out_loss < metrics(dir / "probe").at(0).at("loss").get<double>() - 0.1);
  const auto names = SafeTensors::open(dir / "probe/step-00000200/weights.safetensors").names();
  CHECK(names.size() > 2);
  for (const auto& name : names) CHECK_THAT(name, Catch::StartsWith("mlm."));
  const auto before = SafeTensors::open(dir / "rtd/step-00000300/weights.safetensors");
  size_t held = 0;
  for (const auto& [name, param] : collect_params(*open_run(dir / "probe").network)) {
    INFO(name);
    if (!name.starts_with("backbone.")) continue;
    ++held;
    CHECK(at::equal(param.value(), before.get(name)));
  }
  CHECK(held > 10);
}

TEST_CASE("a probe of a backbone that was trained on the metric finds what it learned", "[train][probe][learning]") {
  TempDir dir;
  auto config = tiny_run(dir, 1500);
  config.objectives = {default_objective<MlmConfig>()};
  const auto trained = pretrain(config, {.run = dir / "mlm"});
  config.init = {.from = dir / "mlm", .probe = true};
  config.train.budget.steps = 500;
  config.optimizer.learning_rate = 1e-2;
  const auto probe = pretrain(config, {.run = dir / "probe"});
  CHECK(trained.held_out_loss < 0.5 * trained.unigram_loss);
  CHECK(probe.held_out_loss < trained.held_out_loss + 0.1);
}

TEST_CASE("a probe of a network that was trained on the metric starts its head anew", "[train][probe]") {
  TempDir dir;
  auto config = tiny_run(dir, 20);
  pretrain(config, {.run = dir / "trained"});  // mlm and nsp
  config.init = {.from = dir / "trained", .probe = true};
  config.train.budget.steps = 1;
  config.optimizer.learning_rate = 0;
  pretrain(config, {.run = dir / "probe"});
  auto fresh = config;
  fresh.init = {};
  pretrain(fresh, {.run = dir / "fresh"});
  const auto of = [&](const std::string& run) {
    return SafeTensors::open(dir / (run + "/step-00000001/weights.safetensors"));
  };
  const auto probe = of("probe"), drawn = of("fresh");
  for (const auto& name : probe.names()) {
    INFO(name);
    CHECK((!name.starts_with("backbone.") || name.starts_with("backbone.pooler.")));
    CHECK(at::equal(probe.get(name), drawn.get(name)));
  }
}

TEST_CASE("the table that a probe's head shares with its backbone adds nothing to the gradient norm",
          "[train][probe]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  config.objectives = {default_objective<MlmConfig>()};
  pretrain(config, {.run = dir / "trained"});
  config.init = {.from = dir / "trained", .probe = true};
  config.train.budget.steps = 40;
  config.optimizer.learning_rate = 0;
  pretrain(config, {.run = dir / "probe"});
  double first = 0, last = 0;
  const auto rows = metrics(dir / "probe");
  for (int i = 0; i < 40; ++i) {
    const auto norm = rows.at(static_cast<size_t>(i)).at("grad_norm").get<double>();
    (i < 20 ? first : last) += norm;
  }
  CHECK(last == Approx(first).epsilon(0.3));  // gradients that no update clears would add up
}

TEST_CASE("a probe that is killed resumes to the same bits", "[train][probe][resume]") {
  TempDir dir;
  auto config = discriminator(dir, 10);
  pretrain(config, {.run = dir / "rtd"});
  config.init = {.from = dir / "rtd", .probe = true};
  config.objectives = {default_objective<MlmConfig>()};
  config.train.budget.steps = 400;
  config.checkpoint.every = 20;
  check_killed_run(config, dir, "step-00000020", "step-00000400", {"weights.safetensors"});
}

TEST_CASE("a probe without a run is refused", "[train][probe]") {
  RunConfig config;
  config.train.budget.steps = 1;
  config.init.probe = true;
  CHECK_THROWS_WITH(validate(config), Catch::Contains("init.probe") && Catch::Contains("name it with init.from"));
}
