// What is trained beside weights that stay: LoRA, biases; and layers that are trained one after another.
#include <cmath>

#include "core/tensor/safetensors.h"
#include "optimizers/optimizer.h"
#include "run/run.h"
#include "tests/support/close_to.h"
#include "tests/support/runs.h"
#include "train/schedule.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// A config that goes on from a run of 200 steps with other words next to each other.
struct Adapted {
  TempDir dir{};
  RunConfig config{};
  Adapted() {
    config = tiny_run(dir, 200);
    pretrain(config, {.run = dir / "base"});
    config.init.from = dir / "base";
    config.train.budget.steps = 100;
    config.optimizer.learning_rate = 1e-2;
  }
};
Adapted& adapted() {
  static Adapted made;
  return made;
}

std::vector<std::string> names_in(const std::string& file) { return SafeTensors::open(file).names(); }

}  // namespace

TEST_CASE("a run with LoRA learns, keeps its factors alone, and opens with their products", "[train][adaptation]") {
  auto& [dir, given] = adapted();
  for (const std::string kind : {"lora", "lora with dropout"}) {
    INFO(kind);
    auto config = given;
    config.adaptation.kind =
        LoraAdaptation{.rank = 4, .dropout = kind == "lora" ? 0 : 0.2, .targets = {"query", "output"}};
    const auto run = dir / kind;
    const auto report = pretrain(config, {.run = run});
    for (const auto& name : names_in(run + "/step-00000100/weights.safetensors"))
      CHECK_THAT(name, Catch::StartsWith("adaptation."));
    CHECK(names_in(run + "/step-00000100/weights.safetensors").size() == 4);
    const auto opened = open_run(run), base = open_run(dir / "base");
    const auto now = collect_params(*opened.network), before = collect_params(*base.network);
    REQUIRE(now.size() == before.size());
    for (size_t i = 0; i < now.size(); ++i) {
      INFO(now[i].name);
      CHECK(now[i].name == before[i].name);
      const bool has_factors = now[i].name.ends_with("qkv.weight") || now[i].name.ends_with("0.output.weight");
      CHECK(at::equal(now[i].param.value(), before[i].param.value()) != has_factors);
    }
    CHECK(report.held_out_loss <
          nlohmann::json::parse(read_text(dir / "base/summary.json")).at("held_out_loss").get<double>());
    const auto summary = nlohmann::json::parse(read_text(run + "/summary.json"));
    CHECK(summary.at("trained_parameters") == 4 * (32 + 32) + 4 * (64 + 32));
    CHECK(summary.at("parameters").get<int64_t>() > 10000);
  }
}

TEST_CASE("a run with LoRA that is killed resumes to the same bits", "[train][adaptation][resume]") {
  auto& [dir, given] = adapted();
  TempDir own;
  auto config = given;
  config.adaptation.kind = LoraAdaptation{.dropout = 0.1};
  config.train.budget.steps = 300;
  config.checkpoint.every = 20;
  check_killed_run(config, own, "step-00000020", "step-00000300", {"weights.safetensors", "optimizer.safetensors"});
}

TEST_CASE("bitfit trains biases alone", "[train][adaptation]") {
  auto& [dir, given] = adapted();
  auto config = given;
  config.adaptation.kind = BitfitAdaptation{};
  pretrain(config, {.run = dir / "bitfit"});
  const auto names = names_in(dir / "bitfit/step-00000100/weights.safetensors");
  CHECK(names.size() > 8);
  const auto before = SafeTensors::open(dir / "base/step-00000200/weights.safetensors"),
             now = SafeTensors::open(dir / "bitfit/step-00000100/weights.safetensors");
  for (const auto& name : names) {
    CHECK_THAT(name, Catch::EndsWith("bias"));
    if (name.find("pooler") == std::string::npos) CHECK_FALSE(at::equal(before.get(name), now.get(name)));
  }
}

TEST_CASE("an adaptation without weights to begin with, or beside other ways to keep them, is refused",
          "[train][adaptation]") {
  RunConfig config;
  config.train.budget.steps = 1;
  config.adaptation.kind = LoraAdaptation{};
  CHECK_THROWS_WITH(validate(config),
                    Contains("adaptation.kind lora trains beside the weights of another run; name it with "
                             "init.from"));
  config.init.from = "runs/base";
  CHECK_NOTHROW(validate(config));
  config.freeze.layers = 0;
  CHECK_THROWS_WITH(validate(config), Contains("so do init.probe and freeze.layers; leave one of them out"));
  config.freeze.layers = -1;
  std::get<LoraAdaptation>(config.adaptation.kind).targets.clear();
  CHECK_THROWS_WITH(validate(config), Contains("adaptation.targets is empty"));
}

TEST_CASE("layers thaw from the last one down, an epoch each", "[train][adaptation]") {
  auto& [dir, given] = adapted();
  auto config = given;
  as<BertConfig>(config.model)->num_hidden_layers = 3;
  config.init = {};
  config.freeze.gradual = true;
  config.train.budget = {};
  const auto run_of = [&](double epochs) {
    config.train.budget.epochs = epochs;
    const auto run = dir / ("gradual-" + std::to_string(epochs));
    const auto report = pretrain(config, {.run = run});
    return SafeTensors::open(open_run(run).checkpoint + "/weights.safetensors");
  };
  config.optimizer.weight_decay = 0;
  const auto first = run_of(0.5), second = run_of(1.5), last = run_of(4.5);
  const auto moved = [](const SafeTensors& a, const SafeTensors& b, const char* name) {
    return !at::equal(a.get(name), b.get(name));
  };
  const char *top = "backbone.stack.2.output.weight", *middle = "backbone.stack.1.output.weight",
             *bottom = "backbone.stack.0.output.weight", *table = "backbone.embeddings.position";
  CHECK(moved(first, second, top));
  CHECK(moved(first, second, middle));
  CHECK_FALSE(moved(first, second, bottom));
  CHECK(moved(second, last, bottom));
  CHECK_FALSE(moved(first, second, table));
  CHECK(moved(second, last, table));
  config.freeze.layers = 1;
  config.init.from = dir / "base";
  CHECK_THROWS_WITH(validate(config), Contains("freeze.gradual trains all layers in the end"));
}

TEST_CASE("slanted triangles rise to the peak over the warm-up and fall to it divided by the ratio",
          "[train][schedule]") {
  ScheduleConfig schedule;
  schedule.shape = SlantedTriangleSchedule{};
  schedule.warmup = 0.1;
  const double total = 200, cut = 20, ratio = 32;
  for (double t = 0; t <= total; ++t) {  // Howard and Ruder 2018, equation 3, with cut_frac 0.1
    const double p = t < cut ? t / cut : 1 - (t - cut) / (cut * (1 / 0.1 - 1));
    CHECK(schedule_factor(schedule, t, total) == Approx((1 + p * (ratio - 1)) / ratio));
  }
}
