#include "train/inspection/scaling.h"

#include <nlohmann/json.hpp>

#include "core/text.h"
#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("a step on many processes costs what the formulas of docs/scaling.md say", "[train]") {
  Description d;
  d.parameters = 100'000'000;
  d.flops_per_step = 64 * 400e12;
  d.weight_bytes = d.gradient_bytes = 4e8;
  d.optimizer_bytes = 8e8;
  RunConfig config;
  config.train.batch_size = 8;
  config.train.accumulation = 64;
  const auto of = [&](int64_t processes, int64_t hosts) { return scaling_of(config, d, {processes, hosts}); };
  const auto many = of(64, 8);
  CHECK(many.sequences == 8);
  CHECK(many.passes == Approx(1));
  CHECK(many.moments == Approx(8e8 / 64));
  CHECK(many.bytes == Approx(8e8 + 8e8 / 64));
  CHECK(many.sent == Approx(2 * 4e8 * 63 / 64));
  CHECK(many.exchange == Approx(2 * 4e8 * (56.0 / 64) / 50e9 + 8 * 6 * 10e-6));  // between hosts, the slower way
  CHECK(of(8, 1).exchange == Approx(2 * 4e8 * (7.0 / 8) / 450e9 + 8 * 3 * 10e-6));
  CHECK(of(1, 1).exchange == 0);
  for (const auto& line : separated(to_text(many), "\n")) CHECK(line.size() <= 100);
  CHECK_THAT(to_text(many), Catch::Contains("each with 8 sequences of a step"));
  CHECK_THAT(to_text(of(512, 64)), Catch::Contains("each with 1 sequence of a step"));
  CHECK(to_json(many)["compute_share"].get<double>() == Approx(1 / (1 + many.exchange)));
}

TEST_CASE("a config on many processes has as many parts, and a step that they divide", "[train]") {
  RunConfig config;
  config.train.budget.steps = 1000;
  config.schedule.warmup = 0;
  config.train.batch_size = 64;
  const auto made = config_on({.processes = 16, .hosts = 2}, config).train;
  CHECK(made.batch_size == 4);
  CHECK(made.accumulation == 16);
  CHECK_THROWS_WITH(config_on({.processes = 6, .hosts = 4}, config),
                    "--processes 6 do not fill --hosts 4 evenly; give a multiple");
  CHECK_THROWS_WITH(config_on({.processes = 3}, config), Catch::Contains("set train.batch_size=63 or 66"));
}
