#include "run/memory.h"

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
  CHECK_NOTHROW(require_memory(config, machine));
  config.train.batch_size = 4096;
  CHECK_THROWS_WITH(require_memory(config, machine),
                    Catch::StartsWith("train.batch_size 4096 with data.max_seq_length 512 takes at least ") &&
                        Catch::Contains("and the machine has 16.0 GB of memory; lower train.batch_size"));
  config.train.device = "cuda";
  CHECK_NOTHROW(require_memory(config, machine));
  CHECK(machine_memory() > 1e8);
  auto large = tiny_run(dir, 1);
  auto& model = std::get<BertConfig>(large.model);
  model.hidden_size = 1 << 16, model.intermediate_size = 1 << 18, model.num_hidden_layers = 1000;
  model.num_attention_heads = 64;
  CHECK_THROWS_AS(pretrain(large, {.run = dir / "run"}), ConfigError);
  CHECK_THROWS_WITH(pretrain(large, {.run = dir / "run"}),
                    Catch::StartsWith("the model (model.hidden_size 65536, model.num_hidden_layers 1000, ") &&
                        Catch::EndsWith(" of memory; choose a smaller model"));
  CHECK_FALSE(std::filesystem::exists(dir / "run"));
}

TEST_CASE("the least memory is below what a model takes, also where blocks share their weights", "[run][memory]") {
  RunConfig config;
  AlbertConfig albert;
  config.model = albert;
  const auto shared = least_memory(config).parameters;
  const double one_block = 8.0 * 2 * static_cast<double>(albert.hidden_size * albert.intermediate_size);
  CHECK(shared >= one_block);
  CHECK(shared < one_block + 8.0 * static_cast<double>(albert.vocab_size * albert.embedding_width()) + 1);
  const auto kept = least_memory(config).activations;
  config.train.gradient_checkpointing = true;
  CHECK(least_memory(config).activations < kept);
}
