// Checkpoints that are kept for the number of words that a run had read.
#include "run/checkpoints/milestones.h"

#include <filesystem>
#include <fstream>

#include "run/config/config.h"
#include "run/run.h"
#include "tests/support/runs.h"

using namespace cloze;

namespace {

CheckpointConfig decoded(const std::string& at_words) {
  return decode<RunConfig>(ConfigTree::parse("checkpoint: {at_words: " + at_words + "}", "run.yaml")).checkpoint;
}

std::string refused(const std::string& at_words) {
  try {
    decoded(at_words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

/// A run directory with a checkpoint at each of these steps, kept for these numbers of words.
void write_checkpoints(const std::string& run, const std::vector<std::pair<int64_t, std::vector<int64_t>>>& steps) {
  std::filesystem::create_directories(run);
  for (const auto& [step, at_words] : steps) {
    TrainState state;
    state.step = step;
    state.at_words = at_words;
    save_checkpoint(run, state, {{"weight", Param(at::ones({2}), Init::weight)}}, {});
  }
}

}  // namespace

TEST_CASE("checkpoint.at_words is a list of numbers, or babylm for those of the challenge", "[run][milestones]") {
  CHECK(decoded("[]").at_words.empty());
  CHECK(decoded("[1M, 250k, 7]").at_words == std::vector<int64_t>{1'000'000, 250'000, 7});
  CHECK(decoded("2M").at_words == std::vector<int64_t>{2'000'000});
  const auto babylm = decoded("babylm").at_words;
  REQUIRE(babylm.size() == 28);
  CHECK(babylm.front() == 1'000'000);
  CHECK(babylm[8] == 9'000'000);
  CHECK(babylm[9] == 10'000'000);
  CHECK(babylm[18] == 100'000'000);
  CHECK(babylm.back() == 1'000'000'000);
  CHECK(refused("babylon") ==
        "run.yaml:1:24: 'checkpoint.at_words' is 'babylon', must be babylm, or a list of numbers, each at least 1; did "
        "you mean 'babylm'?");
  CHECK(refused("[1M, 0]") ==
        "run.yaml:1:29: 'checkpoint.at_words.1' is 0, must be babylm, or a list of numbers, each "
        "at least 1");
}

TEST_CASE("a config writes the name of a list of words and reads it back", "[run][milestones]") {
  RunConfig config;
  for (const auto& at_words : {std::vector<int64_t>{}, {3}, {1'000'000, 5}, babylm::checkpoint_words()}) {
    config.checkpoint.at_words = at_words;
    CHECK(decode<RunConfig>(ConfigTree::parse(to_yaml(config), "run.yaml")).checkpoint.at_words == at_words);
  }
  CHECK_THAT(to_yaml(config), Catch::Contains("at_words: babylm\n"));
}

TEST_CASE("a step reaches the numbers of words that it passes or meets", "[run][milestones]") {
  const std::vector<int64_t> at_words{30, 10, 20};
  CHECK(reached(at_words, 0, 9.9).empty());
  CHECK(reached(at_words, 9.9, 10) == std::vector<int64_t>{10});
  CHECK(reached(at_words, 10, 19).empty());
  CHECK(reached(at_words, 19, 45) == std::vector<int64_t>{20, 30});
}

TEST_CASE("revisions have the names of the challenge", "[run][milestones]") {
  CHECK(revision_of(7'000'000) == "chck_7M");
  CHECK(revision_of(1'000'000'000) == "chck_1000M");
  CHECK(revision_of(250'000) == "chck_250k");
  CHECK(revision_of(1'234) == "chck_1234");
}

TEST_CASE("milestones are found by words, kept when old checkpoints go, and skipped when they are damaged",
          "[run][milestones]") {
  const TempDir dir;
  const auto run = dir / "run";
  write_checkpoints(run, {{2, {100}}, {4, {}}, {6, {200, 300}}, {8, {}}, {10, {}}});
  prune_checkpoints(run, 1);
  CHECK_FALSE(std::filesystem::exists(run + "/step-00000004"));
  CHECK_FALSE(std::filesystem::exists(run + "/step-00000008"));
  auto found = milestones_of(run);
  REQUIRE(found.size() == 3);
  CHECK(found[0].words == 100);
  CHECK(found[0].checkpoint == run + "/step-00000002");
  CHECK(found[1].words == 200);
  CHECK(found[2].words == 300);
  CHECK(found[1].checkpoint == run + "/step-00000006");
  CHECK(found[2].checkpoint == run + "/step-00000006");
  std::ofstream(run + "/step-00000006/weights.safetensors", std::ios::app) << "x";
  found = milestones_of(run);
  REQUIRE(found.size() == 1);
  CHECK(found[0].words == 100);
  std::ofstream(run + "/step-00000002/state.json") << "{";
  CHECK_FALSE(kept_for(run + "/step-00000002").has_value());
  CHECK(steps_without_state(run) == std::vector{run + "/step-00000002"});
  CHECK(milestones_of(run).empty());
  CHECK(milestones_of(dir / "nowhere").empty());
}
