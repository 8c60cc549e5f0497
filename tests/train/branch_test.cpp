#include "tests/support/runs.h"
#include "tests/support/objective.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// A run of 8 steps at the peak after a warm-up of 2, with a checkpoint every second step.
RunConfig stable_run(const TempDir& dir) {
  auto config = tiny_run(dir, 8);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 2;
  config.checkpoint.every = 2;
  config.checkpoint.keep = 10;
  return config;
}

RunConfig decayed_run(const RunConfig& stable, int64_t steps) {
  auto config = stable;
  choose<WsdSchedule>(config.schedule.shape).decay = 0.4;
  config.train.budget.steps = steps;
  return config;
}

std::string step_folder(int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "/step-%08lld", static_cast<long long>(step));
  return name;
}

}  // namespace

TEST_CASE("a branch has the bits of a run with its budget from the start", "[train][branch]") {
  TempDir dir;
  const auto stable = stable_run(dir);
  pretrain(stable, {.run = dir / "stable"});
  for (const auto& [from, steps] : {std::pair<int64_t, int64_t>{4, 7}, {6, 10}}) {
    INFO(steps);
    const auto name = std::to_string(steps);
    pretrain(decayed_run(stable, steps), {.run = dir / ("whole" + name)});
    pretrain(decayed_run(stable, steps),
             {.run = dir / ("branch" + name), .branch_from = dir / ("stable" + step_folder(from))});
    for (const auto* file : {"/weights.safetensors", "/optimizer.safetensors"})
      CHECK(same_files(dir / ("whole" + name + step_folder(steps) + file),
                       dir / ("branch" + name + step_folder(steps) + file)));
    CHECK(metrics(dir / ("whole" + name)) == metrics(dir / ("branch" + name)));
  }
  CHECK(metrics(dir / "stable").size() >= 8);  // the first run is left as it was
}

TEST_CASE("a branch by tokens has the bits of a run with that many tokens from the start", "[train][branch]") {
  TempDir dir;
  auto stable = stable_run(dir);
  stable.train.budget = {.tokens = 2000};
  pretrain(stable, {.run = dir / "stable"});
  auto decayed = decayed_run(stable, 0);
  decayed.train.budget.tokens = 2400;
  const auto whole = pretrain(decayed, {.run = dir / "whole"});
  pretrain(decayed, {.run = dir / "branch", .branch_from = dir / ("stable" + step_folder(4))});
  const auto weights = step_folder(whole.steps) + "/weights.safetensors";
  CHECK(same_files(dir / ("whole" + weights), dir / ("branch" + weights)));
}

TEST_CASE("a branch says in its provenance where it comes from, and resumes as itself", "[train][branch][resume]") {
  TempDir dir;
  const auto stable = stable_run(dir);
  pretrain(stable, {.run = dir / "stable"});
  const auto config = decayed_run(stable, 10);
  pretrain(config, {.run = dir / "branch", .branch_from = dir / ("stable" + step_folder(6))});
  const auto origin = nlohmann::json::parse(read_file(dir / "branch/provenance.json"))["branched_from"];
  CHECK(origin["step"] == 6);
  CHECK(origin["checkpoint"] == dir / ("stable" + step_folder(6)));
  const auto weights = read_file(dir / ("branch" + step_folder(10) + "/weights.safetensors"));
  SECTION("from its first checkpoint") {
    for (const int64_t step : {8, 10}) fs::remove_all(dir / ("branch" + step_folder(step)));
    REQUIRE(fs::exists(dir / ("branch" + step_folder(6))));
  }
  SECTION("killed before its first checkpoint") {
    for (const int64_t step : {6, 8, 10}) fs::remove_all(dir / ("branch" + step_folder(step)));
    for (const auto* name : {"latest", "best", "summary.json"}) fs::remove(dir / ("branch/" + std::string(name)));
  }
  pretrain(config, {.run = dir / "branch", .resume = true});
  CHECK(read_file(dir / ("branch" + step_folder(10) + "/weights.safetensors")) == weights);
}

TEST_CASE("a branch that would not have had these weights is refused before its folder is made", "[train][branch]") {
  TempDir dir;
  const auto stable = stable_run(dir);
  pretrain(stable, {.run = dir / "stable"});
  const auto at_six = dir / ("stable" + step_folder(6));
  const auto refused = [&](const RunConfig& config, const std::string& from, const std::string& why) {
    CHECK_THROWS_WITH(pretrain(config, {.run = dir / "branch", .branch_from = from}), Catch::Contains(why));
    CHECK_FALSE(fs::exists(dir / "branch"));
  };
  refused(decayed_run(stable, 8), at_six,
          "begins its decay after 0.6 of the budget, and the checkpoint stands at 0.75");
  refused(decayed_run(stable, 6), at_six, "has used up the budget of the branch; raise train.budget");
  auto other = decayed_run(stable, 20);
  other.optimizer.learning_rate = 1;
  other.train.seed = 7;
  refused(other, at_six, "a branch may change budget and schedule; undo these changes");
  other = decayed_run(stable, 20);
  other.schedule.warmup = 0.1;
  refused(other, at_six, "warmup 2 -> wsd, warmup 0.1); give both runs the same schedule.warmup in steps");
  other.schedule.shape = CosineSchedule{};
  refused(other, at_six, "(schedule.shape cosine) depends on the budget from the start");
  refused(decayed_run(stable, 20), dir / ("stable" + step_folder(5)), "there is no checkpoint to branch from");
  refused(decayed_run(stable, 20), dir / "nowhere", "is neither a run directory nor a step folder of one");
  auto masks = stable;
  masks.objectives = {objective("{kind: mlm, initial_mlm_probability: 0.3}")};
  pretrain(masks, {.run = dir / "masks"});
  refused(decayed_run(masks, 20), dir / ("masks" + step_folder(6)),
          "so that its masks depend on train.budget; give objectives.0.decay_steps");
}
