// Runs that keep checkpoints at numbers of words, and the rules of the BabyLM Challenge.
#include "run/checkpoints/milestones.h"

#include "data/store/manifest.h"
#include "run/run.h"
#include "tests/support/runs.h"
#include "train/callbacks/babylm_rules.h"

using namespace cloze;

namespace {

double words_of_text(const RunConfig& config) {
  return static_cast<double>(*TokenStore(config.data.tokens, "train").train_words());
}

/// The words of the text, in thousandths.
std::vector<int64_t> parts_of_text(const RunConfig& config, const std::vector<double>& thousandths) {
  std::vector<int64_t> found;
  for (const double part : thousandths) found.push_back(static_cast<int64_t>(part / 1000 * words_of_text(config)));
  return found;
}

/// The steps of the checkpoints that a run has kept.
std::vector<std::string> kept_steps(const std::string& run) {
  std::vector<std::string> found;
  for (const auto& milestone : milestones_of(run))
    found.push_back(std::filesystem::path(milestone.checkpoint).filename().string());
  return found;
}

}  // namespace

TEST_CASE("the first step at or past a number of words is kept, and its state has the words", "[train][milestones]") {
  const TempDir dir;
  auto config = tiny_run(dir, 0);
  config.train.budget = {.epochs = 1};
  config.checkpoint.keep = 1;
  config.checkpoint.at_words = parts_of_text(config, {200, 500, 500.2, 3000});
  pretrain(config, {.run = dir / "run"});
  const auto found = milestones_of(dir / "run");
  REQUIRE(found.size() == 3);  // the budget ends before the last
  CHECK(found[0].words == config.checkpoint.at_words[0]);
  CHECK(found[1].checkpoint == found[2].checkpoint);  // one step reads more than that difference
  for (const auto& [words, checkpoint] : found) {
    const auto state = load_state(checkpoint, nullptr);
    const double epochs = metrics(dir / "run")[static_cast<size_t>(state.step - 1)]["epochs"];
    const double step = epochs / static_cast<double>(state.step) * words_of_text(config);
    CHECK(state.words == Approx(epochs * words_of_text(config)));
    CHECK(state.words >= static_cast<double>(words));
    CHECK(state.words - step < static_cast<double>(words));
  }
}

TEST_CASE("a budget in words ends a run whose last step is the milestone of as many words", "[train][milestones]") {
  const TempDir dir;
  auto config = tiny_run(dir, 0);
  config.train.budget.steps = 0;
  config.train.budget.words = parts_of_text(config, {700})[0];
  config.checkpoint.at_words = {config.train.budget.words};
  const auto report = pretrain(config, {.run = dir / "run"});
  const auto found = milestones_of(dir / "run");
  REQUIRE(found.size() == 1);
  CHECK(load_state(found[0].checkpoint, nullptr).step == report.steps);
}

TEST_CASE("a run that is killed and resumed keeps the same milestones with the same bits", "[train][milestones]") {
  const TempDir dir;
  auto config = tiny_run(dir, 60);
  config.checkpoint.every = 7;
  config.checkpoint.keep = 1;
  config.checkpoint.at_words = parts_of_text(config, {300, 600, 900, 1300});
  check_killed_run(config, dir, "step-00000014", "step-00000060", {"weights.safetensors"});
  const auto kept = kept_steps(dir / "a");
  REQUIRE(kept.size() >= 3);
  CHECK(kept_steps(dir / "b") == kept);
  for (const auto& step : kept)
    CHECK(same_files(dir / ("a/" + step + "/weights.safetensors"), dir / ("b/" + step + "/weights.safetensors")));
}

TEST_CASE("milestones that are asked for in the middle of a run begin there", "[train][milestones]") {
  const TempDir dir;
  auto config = tiny_run(dir, 10);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 0;
  pretrain(config, {.run = dir / "run"});
  const auto state = load_state(dir / "run/step-00000010", nullptr);
  const auto read = static_cast<int64_t>(state.words);
  config.checkpoint.at_words = {read / 2, read + read / 2};
  config.train.budget.steps = 20;
  pretrain(config, {.run = dir / "run", .resume = true});
  const auto found = milestones_of(dir / "run");
  REQUIRE(found.size() == 1);
  CHECK(found[0].words == config.checkpoint.at_words[1]);
}

TEST_CASE("milestones need tokens that were prepared with the count of their words", "[train][milestones]") {
  const TempDir dir;
  auto config = tiny_run(dir, 4);
  config.checkpoint.at_words = {1000};
  auto manifest = read_manifest(config.data.tokens);
  manifest.report.erase("words");
  write_manifest(config.data.tokens, manifest);
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "run"}),
                    Catch::Contains("checkpoint.at_words needs") && Catch::Contains("--force"));
}

TEST_CASE("the rules of BabyLM allow ten epochs of 10 M or 100 M words", "[train][milestones]") {
  CHECK(broken_babylm_rules(9'990'000, 10.01).empty());
  CHECK(broken_babylm_rules(100'000'000, 10).empty());
  CHECK(broken_babylm_rules(5'400'000, 1.9).empty());
  const auto small = broken_babylm_rules(9'900'000, 12.5);
  REQUIRE(small.size() == 1);
  CHECK_THAT(small[0], Catch::Contains("12.5 times (123,750,000 words)") && Catch::Contains("10 epochs, up to 100 M"));
  CHECK_THAT(broken_babylm_rules(50'000'000, 11)[0], Catch::Contains("up to 1000 M"));
  const auto large = broken_babylm_rules(120'000'000, 11);
  REQUIRE(large.size() == 2);
  CHECK_THAT(large[0], Catch::Contains("120,000,000 words") && Catch::Contains("100 M (strict)"));
}

TEST_CASE("a budget in words is advised where it is ten epochs of the text at most", "[train][milestones]") {
  const auto advice = [](uint64_t text_words) { return broken_babylm_rules(text_words, 12).back(); };
  CHECK_THAT(advice(9'990'000), Catch::EndsWith("set train.budget to epochs: 10, or words: 100M"));
  CHECK_THAT(advice(100'000'000), Catch::EndsWith("set train.budget to epochs: 10, or words: 1000M"));
  CHECK_THAT(advice(9'900'000), Catch::EndsWith("set train.budget to epochs: 10"));
  CHECK_THAT(advice(50'000'000), Catch::EndsWith("set train.budget to epochs: 10"));
}

TEST_CASE("a run over the rules of BabyLM is told so once", "[train][milestones]") {
  const TempDir dir;
  auto config = tiny_run(dir, 0);
  config.data.max_seq_length = 12;
  config.train.batch_size = 128;
  config.checkpoint.at_words = babylm::checkpoint_words();
  const auto warned = [&](const std::string& name, const BudgetConfig& budget) {
    config.train.budget = budget;
    const auto run = dir / name;
    pretrain(config, {.run = run});
    const auto log = read_file(run + "/log.txt");
    size_t count = 0;
    for (size_t at = 0; (at = log.find("BabyLM allows", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  CHECK(warned("epochs", {.epochs = 11}) == 1);
  CHECK(warned("ten", {.epochs = 10}) == 0);
  CHECK(warned("first limit", {.steps = 5, .epochs = 11}) == 0);
  CHECK(warned("many tokens", {.tokens = 20 * static_cast<int64_t>(words_of_text(config))}) == 1);
}
