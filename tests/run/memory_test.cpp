#include "run/memory.h"

#include <cmath>
#include <filesystem>

#include "train/inspection/benchmark.h"
#include "core/error.h"
#include "core/log.h"
#include "objectives/network.h"
#include "run/process.h"
#include "tests/support/catch.h"
#include "tests/support/families.h"
#include "tests/support/logged.h"
#include "tests/support/tiny.h"
#include "train/pretrain.h"
#include "tests/support/objective.h"

using namespace cloze;

TEST_CASE("a model or a batch that the machine cannot hold is refused before anything is taken", "[run][memory]") {
  TempDir dir;
  constexpr double machine = 16e9;
  RunConfig config;  // BERT-base
  config.data.max_seq_length = 512;
  CHECK_NOTHROW(require_memory(config, 512, machine));
  config.train.batch_size = 4096;
  CHECK_THROWS_WITH(require_memory(config, 512, machine),
                    Catch::StartsWith("train.batch_size 4096 with rows of 512 tokens takes at least ") &&
                        Catch::Contains("and the machine has 16.0 GB of memory; lower train.batch_size"));
  config.train.batch_size = 32;
  CHECK_THROWS_WITH(require_memory(config, 512, {machine, 16}),
                    Catch::Contains("and the machine has 16.0 GB of memory for 16 processes"));
  config.train.batch_size = 4096;
  CHECK_THROWS_WITH(require_memory(config, 9000, machine), Catch::Contains("with rows of 512 tokens"));
  const MachineMemory gpu(machine, 1, /*gpu=*/true);
  CHECK_THROWS_WITH(require_memory(config, 512, gpu), Catch::Contains("and the GPU has 16.0 GB of memory; lower"));
  config.train.batch_size = 256;  // likely to fail, not certain
  CHECK_THROWS_WITH(require_memory(config, 512, machine), Catch::Contains("takes about"));
  CHECK_NOTHROW(require_memory(config, 512, gpu));
  CHECK_THAT(logged(dir, [&] { warn_of_memory(config, 512, gpu); }),
             Catch::Contains("16.0 GB of memory: it may not fit; lower"));
  auto large = tiny_run(dir, 1);
  auto& model = *as<BertConfig>(large.model);
  model.hidden_size = 1 << 16;
  model.intermediate_size = 1 << 18;
  model.num_hidden_layers = 1000;
  model.num_attention_heads = 64;
  CHECK_THROWS_AS(pretrain(large, {.run = dir / "run"}), ConfigError);
  CHECK_THROWS_WITH(pretrain(large, {.run = dir / "run"}),
                    Catch::StartsWith("the model (model.hidden_size 65536, model.num_hidden_layers 1000, ") &&
                        Catch::EndsWith(" of memory; choose a smaller model"));
  CHECK_THROWS_WITH(benchmark(large, {.steps = 1}), Catch::EndsWith(" of memory; choose a smaller model"));
  CHECK_FALSE(std::filesystem::exists(dir / "run"));
}

TEST_CASE("a batch of the text is compared with the memory, and leaves no folder where it does not fit",
          "[run][memory]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  config.train.batch_size = 1 << 20;
  as<BertConfig>(config.model)->num_hidden_layers = 4096;
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "run"}),
                    Catch::StartsWith("train.batch_size 1048576 with rows of "));
  CHECK_FALSE(std::filesystem::exists(dir / "run"));
}

TEST_CASE("short rows, and weights that a probe does not train, are not counted", "[run][memory]") {
  RunConfig config;
  config.data.max_seq_length = 512;
  config.train.batch_size = 4096;
  const auto whole = least_memory(config, 512), of_short_rows = least_memory(config, 32);
  CHECK(whole.activations == 16 * of_short_rows.activations);
  CHECK(least_memory(config, 0).activations == 0);
  CHECK_NOTHROW(require_memory(config, 12, 16e9));  // short documents in a large batch
  // Measured with 39 tokens a row: more than 24 GB.
  CHECK(likely_memory(config, 39) > 30e9);
  CHECK(least_memory(config, 39).activations < 20e9);
  config.init.probe = true;
  CHECK(least_memory(config, 512).activations == 0);
  CHECK(2 * least_memory(config, 512).parameters == whole.parameters);
}

TEST_CASE("what a run is likely to take has the numbers that its rule keeps of a weight", "[run][memory]") {
  RunConfig config;
  const double trained = least_memory(config, 0).parameters;  // weights and gradients, two numbers each
  const auto share = [&](const UpdateRule& rule) {
    config.optimizer.rule = rule;
    return likely_memory(config, 0) / trained;
  };
  CHECK(share(AdamW{}) == 2);
  CHECK(share(Lamb{}) == 2);
  CHECK(share(Lion{}) == 1.5);
  CHECK(share(Adafactor{}) == Approx(1).epsilon(2e-3));
  CHECK(share(Adafactor{}) > 1);
}

TEST_CASE("the least memory is below what a model takes, also where blocks share their weights", "[run][memory]") {
  RunConfig config;
  AlbertConfig albert;
  config.model = albert;
  const auto shared = least_memory(config, 512).parameters;
  const double one_block = 8.0 * 2 * static_cast<double>(albert.hidden_size * albert.intermediate_size);
  CHECK(shared >= one_block);
  CHECK(shared < 3 * one_block);
  const auto kept = least_memory(config, 512).activations;
  config.train.gradient_checkpointing = true;
  CHECK(least_memory(config, 512).activations < kept);
}

TEST_CASE("the least memory counts most weights of every family, and none that it has not", "[run][memory]") {
  for (auto family : every_family()) {
    CAPTURE(family.name);
    backbone_of(family.model).vocab_size = 50;
    RunConfig config;
    config.model = family.model;
    config.objectives = family.objectives;
    const Network network(config.model, config.objectives);
    double weights = 0;
    for (const auto& [name, param] : collect_params(network)) weights += static_cast<double>(param.value().numel());
    const double counted = least_memory(config, 0).parameters / 8;
    CHECK(counted <= weights);
    CHECK(counted > weights / 2);
  }
}

TEST_CASE("tables of positions, types and outputs, decoders and generators are weighed before memory is taken",
          "[run][memory]") {
  constexpr double machine = 16e9;
  const auto refused = [&](const ModelConfig& model, const Objectives& objectives) {
    RunConfig config;
    config.model = model;
    config.objectives = objectives;
    CHECK_THROWS_WITH(require_memory(config, 0, machine), Catch::Contains(" takes at least "));
  };
  BertConfig positions;
  positions.max_position_embeddings = 40'000'000;
  refused(positions, {default_objective<MlmConfig>()});
  positions.positions = PositionTable::sinusoidal;
  refused(positions, {default_objective<MlmConfig>()});
  positions.positions = RelativeKeys{};
  refused(positions, {default_objective<MlmConfig>()});
  positions.positions = Rotary{};
  RunConfig rotated;
  rotated.model = positions;
  CHECK_NOTHROW(require_memory(rotated, 0, machine));
  BertConfig types;
  types.type_vocab_size = 1 << 20;
  types.hidden_size = 1 << 12;
  refused(types, {default_objective<MlmConfig>()});
  Gpt2Config untied;
  untied.vocab_size = 2'000'000;
  RunConfig tied;
  tied.model = untied;
  CHECK_NOTHROW(require_memory(tied, 0, machine));
  untied.tie_word_embeddings = false;
  refused(untied, {default_objective<ClmConfig>()});
  BartConfig decoder;
  decoder.num_decoder_layers = 1000;
  refused(decoder, {default_objective<DenoisingConfig>()});
  ElectraConfig electra;
  electra.num_hidden_layers = 100;
  refused(electra, {objective("{kind: rtd, generator_hidden_size: 4, generator_layers: 4}")});
}

TEST_CASE("states that are kept for probes count as memory", "[run][memory]") {
  TempDir dir;
  RunConfig config;
  config.init.probe = true;
  const double network = likely_memory(config, 0), states = 4e9;
  const auto said = [&](double machine) { return logged(dir, [&] { check_kept_states(config, states, machine); }); };
  CHECK(said(network + states).empty());
  CHECK(said(0).empty());  // not known
  CHECK_THROWS_WITH(check_kept_states(config, states, 3.9e9),
                    Catch::StartsWith("the network and the states that its probes read take ") &&
                        Catch::Contains("4.0 GB of them for the states, and the machine has 3.9 GB of memory") &&
                        Catch::EndsWith("name fewer layers in objectives.0.layer"));
  config.init.probe = false;  // so that moments make what is likely more than what is taken at least
  CHECK_THAT(said(likely_memory(config, 0) + states - 1e6),
             Catch::Contains("of them for the states") && Catch::Contains("the system may kill it"));
  CHECK(logged(dir, [&] { check_kept_states(config, states, {1, 1, /*gpu=*/true}); }).empty());
}

TEST_CASE("a batch that is likely to take more than the machine has is warned of, and one far larger refused",
          "[run][memory]") {
  TempDir dir;
  RunConfig config;
  config.data.max_seq_length = 512;
  config.train.batch_size = 256;
  const double likely = likely_memory(config, 128);
  const auto warnings = [&](double machine) {
    return logged(dir, [&] {
      require_memory(config, 128, machine);
      warn_of_memory(config, 128, machine);
    });
  };
  CHECK(warnings(1.01 * likely).empty());
  CHECK_THAT(warnings(0.7 * likely),
             Catch::Contains("a step with train.batch_size 256 and rows of 128 tokens takes about ") &&
                 Catch::Contains(": the system may kill it; lower train.batch_size"));
  const double machine = 0.6 * likely;
  REQUIRE(least_memory(config, 128).parameters + least_memory(config, 128).activations < machine);
  CHECK_NOTHROW(require_memory(config, 0, machine));  // the rows are not known yet
  CHECK_THROWS_WITH(require_memory(config, 128, machine),
                    Catch::StartsWith("a step with train.batch_size 256 and rows of 128 tokens takes about ") &&
                        Catch::EndsWith("train.gradient_checkpointing=true, or choose a smaller model"));
}

TEST_CASE("the memory is that which control groups allow, of every level and of both versions", "[run][memory]") {
  TempDir dir;
  CHECK(machine_memory() > 1e8);
  dir.write("memory.max", "max\n");
  dir.write("job/memory.max", "3000000000\n");
  dir.write("job/step/memory.max", "max\n");
  dir.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  dir.write("memory/job/memory.limit_in_bytes", "2000000000\n");
  const auto root = dir.path.string();
  CHECK(std::isinf(group_memory("0::/\n", root, 0)));
  CHECK(std::isinf(group_memory("", root, 0)));
  CHECK(group_memory("0::/job/step\n", root, 0) == 3e9);
  CHECK(group_memory("0::/job/step\n", root, 1e9) == 4e9);
  CHECK(group_memory("5:cpu:/job\n4:memory:/job/none\n0::/\n", root, 0) == 2e9);
  CHECK(group_memory("4:memory:/\n", root, 0) > 9e18);
}
