// Budgets in every currency, and evaluations at shares of them.
#include <cmath>

#include "data/store/manifest.h"
#include "evaluation/evaluate.h"
#include "models/families/gpt2.h"
#include "run/config/load_config.h"
#include "run/run.h"
#include "tests/support/runs.h"
#include "train/training.h"

using namespace cloze;

namespace {

/// The usage that a finished run notes in its summary.
nlohmann::json summary_of(const std::string& run) { return nlohmann::json::parse(read_file(run + "/summary.json")); }

/// Trains with a budget; what the run has used up, and how many steps it took.
nlohmann::json trained(const TempDir& dir, const std::string& name, const BudgetConfig& budget) {
  auto config = tiny_run(dir, 0);
  config.train.budget = budget;
  config.checkpoint.log_every = 1;
  pretrain(config, {.run = dir / ("run by " + name)});
  return summary_of(dir / ("run by " + name));
}

}  // namespace

TEST_CASE("a run ends at the first step that reaches its budget, in every currency", "[train][budget]") {
  const TempDir dir;
  const auto by_steps = trained(dir, "steps", {.steps = 12});
  const double tokens = by_steps["tokens"], predicted = by_steps["predicted_tokens"], words = by_steps["words"],
               epochs = by_steps["epochs"], flops = by_steps["flops"];
  CHECK(predicted > 0.05 * tokens);
  CHECK(predicted < 0.3 * tokens);
  CHECK(words > 0);
  CHECK(flops > 0);
  // What 12 steps use up ends a run after 12 steps; a little more takes another one.
  const auto check = [&](const std::string& name, const BudgetConfig& exact, const BudgetConfig& more) {
    INFO(name);
    CHECK(trained(dir, name, exact)["steps"] == 12);
    CHECK(trained(dir, name + "+", more)["steps"] == 13);
  };
  const auto count = [](double n) { return static_cast<int64_t>(std::llround(n)); };
  check("tokens", {.tokens = count(tokens)}, {.tokens = count(tokens) + 1});
  check("predicted", {.predicted_tokens = count(predicted)}, {.predicted_tokens = count(predicted) + 1});
  check("epochs", {.epochs = epochs * (1 - 1e-9)}, {.epochs = epochs * 1.001});
  check("words", {.words = static_cast<int64_t>(words)}, {.words = count(words * 1.001) + 1});
  check("flops", {.flops = flops}, {.flops = flops * 1.001});
}

TEST_CASE("a budget of published FLOPs ends sooner, and a run goes on with the count that it began with",
          "[train][budget]") {
  const TempDir dir;
  const auto computed = trained(dir, "computed", {.steps = 12}),
             published = trained(dir, "published", {.steps = 12, .count = FlopsCount::published});
  const double flops = computed["flops"];
  CHECK(published["flops"] > 1.05 * flops);
  CHECK(published["held_out_loss"] == computed["held_out_loss"]);
  CHECK(trained(dir, "sooner", {.flops = flops, .count = FlopsCount::published})["steps"] < 12);
  auto config = decode<RunConfig>(load_run_config(dir / "run by computed/run.yaml"));
  config.train.budget = {.steps = 13, .count = FlopsCount::published};
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "run by computed", .resume = true}),
                    Catch::Contains("train.budget.count: computed -> published"));
}

TEST_CASE("words are those of the training text between white space, each time they are seen", "[train][budget]") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "one two,  three\tfour-five\u00A0six.\n\n";
  PrepareOptions options;
  options.inputs = {dir.write("text.txt", text)};
  options.out = dir / "tokens";
  options.train_kind = TokenizerKind::wordpiece;
  options.vocab_size = 60;
  options.held_out = 0.25;
  options.threads = 1;
  prepare(options);
  const TokenStore store(options.out, "train");
  CHECK(store.train_words() == 5 * store.num_documents());
}

TEST_CASE("a budget in words needs tokens that were prepared with their count", "[train][budget]") {
  const TempDir dir;
  auto config = tiny_run(dir, 0);
  config.train.budget = {.words = 1000};
  auto manifest = read_manifest(config.data.tokens);
  manifest.report.erase("words");
  write_manifest(config.data.tokens, manifest);
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "run"}),
                    Catch::Contains("was prepared without a count of its words") && Catch::Contains("--force"));
}

TEST_CASE("evaluations lie at equal shares of the budget, also of a run that is resumed", "[train][budget]") {
  const TempDir dir;
  auto config = tiny_run(dir, 20);
  config.evaluation.points = 5;
  config.checkpoint.every = 6;
  const auto evaluated = [&](const std::string& run) {
    std::vector<int64_t> steps;
    for (const auto& row : metrics(run))
      if (row.contains("held_out_loss")) steps.push_back(row["step"]);
    return steps;
  };
  pretrain(config, {.run = dir / "whole"});
  CHECK(evaluated(dir / "whole") == std::vector<int64_t>{4, 8, 12, 16, 20});
  check_killed_run(config, dir, "step-00000006", "step-00000020", {"weights.safetensors"});
  config.train.budget = {.tokens = summary_of(dir / "whole")["tokens"]};
  pretrain(config, {.run = dir / "by-tokens"});
  CHECK(evaluated(dir / "by-tokens").size() == 5);
}

TEST_CASE("held_out.json has the loss and the predictions of every sequence", "[train][budget]") {
  const TempDir dir;
  const auto report = pretrain(tiny_run(dir, 3), {.run = dir / "run"});
  const auto file = nlohmann::json::parse(read_file(dir / "run/held_out.json"));
  CHECK(file["step"] == 3);
  REQUIRE(!report.held_out.empty());
  for (const auto& part : report.held_out) {
    const auto& losses = file["losses"][part.name];
    REQUIRE(losses["sum"].size() == part.sequences.size());
    double sum = 0, count = 0;
    for (size_t i = 0; i < part.sequences.size(); ++i) {
      sum += losses["sum"][i].get<double>();
      count += losses["count"][i].get<double>();
    }
    CHECK(sum / count == Approx(part.loss));
    CHECK_FALSE(losses.contains("bytes"));  // masked tokens are a part of the text
  }
}

TEST_CASE("held_out.json of a generative objective has the source bytes of every sequence", "[train][budget]") {
  const TempDir dir;
  auto config = tiny_run(dir, 2);
  config.model = tiny_model<Gpt2Config>();
  config.objectives = {default_objective<ClmConfig>()};
  pretrain(config, {.run = dir / "run"});
  const auto losses = nlohmann::json::parse(read_file(dir / "run/held_out.json"))["losses"]["clm"];
  REQUIRE(losses["bytes"].size() == losses["sum"].size());
  // Words of the synthetic language have two letters and a space before most of them.
  for (size_t i = 0; i < losses["bytes"].size(); ++i) {
    const double bytes = losses["bytes"][i], count = losses["count"][i];
    CHECK(bytes > 2 * count - 3);
    CHECK(bytes <= 3 * count);
  }
}
