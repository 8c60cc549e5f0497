// The moving average of the weights: its arithmetic, and runs that keep one.
#include "train/weight_average.h"

#include <algorithm>

#include "core/tensor/safetensors.h"
#include "run/run.h"
#include "tests/support/runs.h"
#include "tests/support/numbers.h"
#include "tests/support/objective.h"

using namespace cloze;

namespace {

/// Averaged over twelve steps, with an evaluation and a checkpoint in the middle.
RunConfig averaged_run(const TempDir& dir) {
  auto config = tiny_run(dir, 12);
  config.train.ema_decay = 0.7;
  config.evaluation.every = 5;
  config.checkpoint.every = 4;
  config.checkpoint.keep = 9;
  return config;
}

}  // namespace

TEST_CASE("an average of weights approaches them by its share, and fixed parameters are those of the network",
          "[train][average]") {
  const auto param = [](int64_t size, Init init) { return Param(numbers({size}, 1).set_requires_grad(true), init); };
  const int64_t large = (int64_t{1} << 16) + 100;  // more than one chunk
  FlatParameters flat({{"weight", param(large, Init::weight)}, {"features", param(20, Init::fixed_features)}},
                      at::kCPU);
  WeightAverage average(0.9, flat);
  auto expected = flat.values.to(at::kDouble);
  for (const int step : {1, 2, 79, 80, 81, 2000}) {  // from 80 on, decay is the smaller one
    flat.values.add_(numbers({flat.values.numel()}, step, 0.1));
    average.update(step);
    const double decay = std::min(0.9, (1.0 + step) / (10.0 + step));
    expected = decay * expected + (1 - decay) * flat.values.to(at::kDouble);
  }
  const auto params = average.params();
  REQUIRE(params.size() == 2);
  CHECK(params[0].name == "weight");
  CHECK((params[0].param.value() - expected.narrow(0, 0, large)).abs().max().item<double>() < 1e-6);
  CHECK(params[1].param.value().equal(flat.ranges()[1].param.param.value().detach()));
  const auto before = flat.values.clone();
  average.exchange();
  CHECK_FALSE(flat.values.equal(before));
  average.exchange();
  CHECK(flat.values.equal(before));
}

TEST_CASE("averaging does not change what is trained, and checkpoints hold the average and the last weights",
          "[train][average]") {
  const TempDir dir;
  auto config = averaged_run(dir);
  pretrain(config, {.run = dir / "averaged"});
  config.train.ema_decay = 0;
  pretrain(config, {.run = dir / "plain"});
  const auto step = [&](const std::string& run, const std::string& name) { return dir / (run + "/" + name); };
  CHECK(same_files(step("averaged", "step-00000012/iterate.safetensors"),
                   step("plain", "step-00000012/weights.safetensors")));
  CHECK(same_files(step("averaged", "step-00000012/optimizer.safetensors"),
                   step("plain", "step-00000012/optimizer.safetensors")));
  CHECK_FALSE(std::filesystem::exists(step("plain", "step-00000012/iterate.safetensors")));
  CHECK_FALSE(same_files(step("averaged", "step-00000012/weights.safetensors"),
                         step("plain", "step-00000012/weights.safetensors")));
}

TEST_CASE("a run is evaluated by its average, which is what is opened again", "[train][average]") {
  const TempDir dir;
  auto config = averaged_run(dir);
  config.train.precision = Precision::fp32;
  const auto report = pretrain(config, {.run = dir / "run"});
  auto opened = open_run(dir / "run/step-00000012");
  const auto losses =
      evaluate(*opened.network, held_out_measures(opened.config, TokenStore(config.data.tokens, "valid")),
               config.train.batch_size, at::kCPU);
  REQUIRE(losses.size() == report.held_out.size());
  for (size_t k = 0; k < losses.size(); ++k) CHECK(losses[k].loss == Approx(report.held_out[k].loss).epsilon(1e-5));
  const auto average = SafeTensors::open(dir / "run/step-00000012/weights.safetensors");
  for (const auto& [name, param] : collect_params(*opened.network)) CHECK(param.value().equal(average.get(name)));
}

TEST_CASE("an averaged run resumes to the same bits", "[train][average][resume]") {
  const TempDir dir;
  auto config = averaged_run(dir);
  pretrain(config, {.run = dir / "whole"});
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  pretrain(config, {.run = dir / "constant"});
  config.train.budget.steps = 6;
  pretrain(config, {.run = dir / "resumed"});
  config.train.budget.steps = 12;
  pretrain(config, {.run = dir / "resumed", .resume = true});
  for (const std::string file : {"weights", "iterate", "optimizer"}) {
    INFO(file);
    const auto name = "/step-00000012/" + file + ".safetensors";
    CHECK(same_files(dir / ("constant" + name), dir / ("resumed" + name)));
    CHECK_FALSE(same_files(dir / ("constant" + name), dir / ("whole" + name)));
  }
}

TEST_CASE("an average can begin in the middle of a run, and end there", "[train][average][resume]") {
  const TempDir dir;
  auto config = averaged_run(dir);
  config.train.ema_decay = 0;
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  config.train.budget.steps = 4;
  pretrain(config, {.run = dir / "run"});
  config.train.ema_decay = 0.7;
  config.train.budget.steps = 8;
  pretrain(config, {.run = dir / "run", .resume = true, .overwrite_config = true});
  CHECK(std::filesystem::exists(dir / "run/step-00000008/iterate.safetensors"));
  config.train.ema_decay = 0;
  config.train.budget.steps = 12;
  pretrain(config, {.run = dir / "run", .resume = true, .overwrite_config = true});
  pretrain(config, {.run = dir / "plain"});
  const std::string last = "/step-00000012/weights.safetensors";
  CHECK(same_files(dir / ("run" + last), dir / ("plain" + last)));
}

TEST_CASE("an average and a discriminator that starts from its generator exclude each other", "[train][average]") {
  const TempDir dir;
  auto config = averaged_run(dir);
  config.objectives = {objective("{kind: rtd, generator_steps: 6, generator_hidden_size: 1, tie: none}")};
  CHECK_THROWS_WITH(validate(config), Catch::Contains("train.ema_decay 0.7") && Catch::Contains("generator_steps"));
}
