// What a benchmark says beside the time of its steps.
#include "train/inspection/benchmark.h"

#include <nlohmann/json.hpp>

#include "tests/support/runs.h"

using namespace cloze;
using Catch::Contains;

namespace {

std::string pair_of(const std::string& good) {
  return nlohmann::json{{"sentence_good", good}, {"sentence_bad", "wc wh"}}.dump() + "\n";
}

}  // namespace

TEST_CASE("a benchmark says what the suites of a run cost, and refuses one with a text that is too long",
          "[inspect][suites]") {
  const TempDir dir;
  auto config = tiny_run(dir, 3);
  config.evaluation.suites = {dir.write("pairs.jsonl", pair_of("wa wb we") + pair_of("wd wk"))};
  const auto found = benchmark(config, {.steps = 1, .steps_only = true});
  REQUIRE(found.suite_costs.size() == 1);
  CHECK(found.suite_costs.at("pairs").flops > 0);
  CHECK_THAT(to_text(found), Contains("\nsuite      pairs: ") && Contains("FLOPs"));
  CHECK(to_json(found)["suite_costs"]["pairs"]["seconds"] > 0.0);
  CHECK(to_json(found)["suite_figures"]["pairs"][0] == "accuracy");
  std::string text = "wa";
  for (int i = 0; i < 400; ++i) text += " wb";
  config.evaluation.suites = {dir.write("long.jsonl", pair_of(text))};
  CHECK_THROWS_WITH(benchmark(config, {.steps = 1, .steps_only = true}),
                    Contains("evaluation.suites: long: ") && Contains("or leave the suite out"));
}

TEST_CASE("a benchmark names the held-out documents that the run would score", "[inspect]") {
  const TempDir dir;
  auto config = tiny_run(dir, 2);
  config.evaluation.sequences = 5;
  const auto found = benchmark(config, {.steps = 1, .steps_only = true}).scored_documents;
  pretrain(config, {.run = dir / "run"});
  const auto losses = nlohmann::json::parse(read_file(dir / "run/held_out.json")).at("losses");
  CHECK(found == losses.front().at("document").get<std::set<uint64_t>>());
  CHECK((found.size() > 1 && found.size() <= 5));
}

TEST_CASE("the utilization of an fp32 step is relative to the rate of fp32 products, whatever that of bf16",
          "[inspect]") {
  const TempDir dir;
  auto config = tiny_run(dir, 3);
  config.train.precision = Precision::fp32;
  const auto found = benchmark(config, {.steps = 1});
  CHECK(found.mfu == Approx(found.gflop_per_step / (found.ms_per_step / 1000) / found.gemm_fp32));
}

TEST_CASE("a step is no slower where no other process wants the cores", "[inspect]") {
  const TempDir dir;
  const auto found = benchmark(tiny_run(dir, 3), {.steps = 3, .steps_only = true});
  CHECK(found.ms_undisturbed > 0);
  CHECK(found.ms_undisturbed <= found.ms_per_step);
  CHECK((found.share_of_cores > 0 && found.share_of_cores <= 1));
  CHECK(to_json(found)["ms_undisturbed"] == found.ms_undisturbed);
}

TEST_CASE("a benchmark of a run of which a part stays as it is trains the rest alone", "[inspect]") {
  const TempDir dir;
  auto config = tiny_run(dir, 3);
  const auto loss = [&] { return benchmark(config, {.steps = 2, .steps_only = true}).last_loss; };
  const auto whole = loss();
  CHECK(loss() == whole);
  config.init.from = "not read";
  config.freeze.layers = 0;
  const auto layers = loss();
  CHECK(layers != whole);
  config.freeze.layers = -1;
  config.init.probe = true;
  const auto head = loss();
  CHECK((head != whole && head != layers));
}
