// Training on a mixture of texts.
#include "evaluation/run_losses.h"
#include "run/moved.h"
#include "run/records/provenance.h"
#include "run/training_rows.h"
#include "tests/support/runs.h"
#include "train/training.h"

using namespace cloze;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

/// A run on two texts of the synthetic language, the second one short and half of what is read; held out is text of the
/// first.
RunConfig mixed_run(const TempDir& dir, int64_t steps) {
  auto config = tiny_run(dir, steps);
  PrepareOptions options;
  options.inputs = {dir.write("short.txt", synthetic_text(30, 5))};
  options.tokenizer = dir / "vocab.txt";
  options.out = dir / "short";
  options.format = TextFormat::lines;
  options.held_out = 0.2;
  options.threads = 1;
  if (!fs::exists(options.out)) prepare(options);
  config.data.mixture = {{config.data.tokens, 1}, {options.out, 1}};
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  return config;
}

bool same_weights(const TempDir& dir, const std::string& a, const std::string& b, const std::string& step) {
  const auto file = "/step-" + step + "/weights.safetensors";
  return same_files(dir / (a + file), dir / (b + file));
}

nlohmann::json recorded_data_of(const std::string& run) {
  return nlohmann::json::parse(read_file(run + "/provenance.json"))["data"];
}

}  // namespace

TEST_CASE("a mixture of the text alone trains to the bits of the text", "[train][mixture]") {
  TempDir dir;
  auto config = tiny_run(dir, 6);
  pretrain(config, {.run = dir / "text"});
  config.data.mixture = {{config.data.tokens, 0.3}};
  pretrain(config, {.run = dir / "mixture"});
  CHECK(same_weights(dir, "text", "mixture", "00000006"));
  CHECK(metrics(dir / "text") == metrics(dir / "mixture"));
  CHECK(recorded_data_of(dir / "text") == recorded_data_of(dir / "mixture"));
}

TEST_CASE("the texts of a run on a mixture are found where they were moved to", "[train][mixture]") {
  TempDir dir;
  const auto mixed = mixed_run(dir, 1);
  auto alone = mixed;
  alone.data.mixture.resize(1);  // the text of data.tokens
  pretrain(mixed, {.run = dir / "mixed"});
  pretrain(alone, {.run = dir / "alone"});
  fs::rename(mixed.data.tokens, dir / "moved-tokens");
  fs::rename(dir / "short", dir / "moved-short");
  const auto data = data_of_run(dir / "mixed", mixed.data);
  CHECK(data.tokens == dir / "moved-tokens");
  CHECK(data.mixture[0].tokens == dir / "moved-tokens");
  CHECK(data.mixture[1].tokens == dir / "moved-short");
  CHECK(data_of_run(dir / "alone", alone.data).mixture[0].tokens == dir / "moved-tokens");
}

TEST_CASE("word frequencies of a run on a mixture are those of what it reads", "[train][mixture]") {
  TempDir dir;
  auto config = mixed_run(dir, 1);
  const auto store = open_tokens(config, "train");
  CHECK(training_counts(config.data, store.tokenizer()).counts == store.train_counts());
  config.data.mixture.clear();
  CHECK(training_counts(config.data, store.tokenizer()).counts == open_tokens(config, "train").train_counts());
  config.data.mixture = {{dir / "none", 1}};
  const auto unknown = training_counts(config.data, store.tokenizer());
  CHECK(unknown.counts.empty());
  CHECK_THAT(unknown.why, Contains("none: no such folder"));
}

TEST_CASE("a mixture gives the same bits for any number of workers, and when the run is resumed",
          "[train][mixture][resume]") {
  TempDir dir;
  auto config = mixed_run(dir, 8);
  config.train.accumulation = 2;
  pretrain(config, {.run = dir / "whole"});
  config.train.workers = 3;
  config.train.threads = 1;
  pretrain(config, {.run = dir / "workers"});
  CHECK(same_weights(dir, "whole", "workers", "00000008"));
  config.train.budget.steps = 3;
  pretrain(config, {.run = dir / "half"});
  config.train.budget.steps = 8;
  pretrain(config, {.run = dir / "half", .resume = true});
  CHECK(same_weights(dir, "whole", "half", "00000008"));
}

TEST_CASE("the held-out text of a mixture is that of data.tokens", "[train][mixture]") {
  TempDir dir;
  auto config = mixed_run(dir, 2);
  const auto protocol = [&](const std::string& run) {
    return nlohmann::json::parse(read_file(dir / (run + "/held_out.json")))["measured"];
  };
  pretrain(config, {.run = dir / "mixture"});
  config.data.mixture = {{dir / "short", 1}};
  pretrain(config, {.run = dir / "other"});
  config.data.mixture.clear();
  pretrain(config, {.run = dir / "text"});
  CHECK(protocol("text").is_string());
  CHECK(protocol("mixture") == protocol("text"));
  CHECK(protocol("other") == protocol("text"));
}

TEST_CASE("a run records each text of its mixture, and goes on with these alone", "[train][mixture][resume]") {
  TempDir dir;
  auto config = mixed_run(dir, 2);
  pretrain(config, {.run = dir / "run"});
  const auto data = recorded_data_of(dir / "run");
  const TokenStore first(config.data.tokens, "train"), second(dir / "short", "train");
  CHECK(data["held_out"]["fingerprint"] == first.fingerprint());
  REQUIRE(data["mixture"].size() == 2);
  CHECK(data["mixture"][1]["fingerprint"] == second.fingerprint());
  CHECK(data["mixture"][1]["tokens_folder"] == dir / "short");
  CHECK(data["mixture"][1]["share"] == 0.5);
  CHECK(data["tokens"] == first.num_tokens() + second.num_tokens());
  const auto resume = [&](const RunConfig& changed) { pretrain(changed, {.run = dir / "run", .resume = true}); };
  auto heavier = config;
  heavier.data.mixture[1].weight = 2;
  CHECK_THROWS_WITH(resume(heavier), Contains("data.mixture.1.weight: 1 -> 2"));
  auto swapped = config;
  std::swap(swapped.data.mixture[0], swapped.data.mixture[1]);
  CHECK_THROWS_WITH(resume(swapped), Contains("was trained on different tokens than"));
  auto scored = config;
  scored.data.tokens = dir / "short";
  CHECK_THROWS_WITH(resume(scored), Contains("was trained on different tokens than"));
  fs::rename(dir / "short", dir / "moved");
  config.data.mixture[1].tokens = dir / "moved";
  config.train.budget.steps = 4;
  resume(config);
  CHECK(recorded_data_of(dir / "run") == data);
}

TEST_CASE("a text of a mixture that has held-out documents in it is warned of", "[train][mixture]") {
  TempDir dir;
  auto config = tiny_run(dir, 1);
  PrepareOptions options;
  options.inputs = {dir / "text.txt"};
  options.tokenizer = dir / "vocab.txt";
  options.out = dir / "all";
  options.format = TextFormat::lines;
  options.held_out = 0;
  options.threads = 1;
  prepare(options);
  config.data.mixture = {{config.data.tokens, 1}, {options.out, 1}};
  pretrain(config, {.run = dir / "run"});
  const auto held_out = TokenStore(config.data.tokens, "valid").num_documents();
  CHECK_THAT(read_file(dir / "run/log.txt"), Contains(concat(dir / "all: has ", held_out, " of the ", held_out,
                                                             " held-out documents of ", config.data.tokens)));
}

TEST_CASE("the log says what is read of each text and how often, and warns of one that is read too often",
          "[train][mixture]") {
  TempDir dir;
  auto config = mixed_run(dir, 2);
  config.train.budget = {.epochs = 2};
  const auto parts = TokenStore::mixture({{.text = TokenStore(config.data.tokens, "train")},
                                          {.text = TokenStore(dir / "short", "train")}})
                         .parts();
  const auto log_of = [&](const std::string& run) {
    pretrain(config, {.run = dir / run});
    return read_file(dir / (run + "/log.txt"));
  };
  auto said = log_of("twice");
  CHECK_THAT(said, Contains(dir / "short: 50 % of the tokens that are read, "));
  CHECK_THAT(said, Contains("read about " + significant(2 * parts[1].passes, 3) + " times within the budget"));
  CHECK_THAT(said, Contains(" documents of " + config.data.tokens));
  CHECK_THAT(said, !Contains("teaches almost nothing"));
  config.train.budget = {.steps = 2, .tokens = 1'000'000'000};
  said = log_of("steps");
  CHECK_THAT(said, !Contains("teaches almost nothing"));
  config.train.budget = {.minutes = 0.001};
  said = log_of("minutes");
  CHECK_THAT(said, Contains("read " + significant(parts[1].passes, 3) + " times an epoch"));
  config.data.mixture[1].weight = 99;
  config.train.budget = {.epochs = 8};
  config.train.batch_size = 512;  // few steps
  said = log_of("often");
  CHECK_THAT(said, Contains("warning") && Contains("short: is read about"));
}
