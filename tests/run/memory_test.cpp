#include "run/memory.h"

#include <cmath>
#include <filesystem>

#include "analysis/benchmark.h"
#include "core/error.h"
#include "run/process.h"
#include "tests/support/catch.h"
#include "tests/support/tiny.h"
#include "train/pretrain.h"

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
  CHECK_THROWS_WITH(require_memory(config, 9000, machine), Catch::Contains("with rows of 512 tokens"));
  config.train.device = "cuda";
  CHECK_NOTHROW(require_memory(config, 512, machine));
  auto large = tiny_run(dir, 1);
  auto& model = std::get<BertConfig>(large.model);
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
  std::get<BertConfig>(config.model).num_hidden_layers = 4096;
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
  CHECK_NOTHROW(require_memory(config, 20, 16e9));  // short documents in a large batch
  // Measured with 39 tokens a row: more than 24 GB.
  CHECK(likely_memory(config, 39) > 30e9);
  CHECK(least_memory(config, 39).activations < 20e9);
  config.init.probe = true;
  CHECK(least_memory(config, 512).activations == 0);
  CHECK(2 * least_memory(config, 512).parameters == whole.parameters);
}

TEST_CASE("the least memory is below what a model takes, also where blocks share their weights", "[run][memory]") {
  RunConfig config;
  AlbertConfig albert;
  config.model = albert;
  const auto shared = least_memory(config, 512).parameters;
  const double one_block = 8.0 * 2 * static_cast<double>(albert.hidden_size * albert.intermediate_size);
  CHECK(shared >= one_block);
  CHECK(shared < one_block + 8.0 * static_cast<double>(albert.vocab_size * albert.embedding_width()) + 1);
  const auto kept = least_memory(config, 512).activations;
  config.train.gradient_checkpointing = true;
  CHECK(least_memory(config, 512).activations < kept);
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
