#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "study/execution/runner.h"
#include "study/execution/runs.h"
#include "study/report/report_rows.h"
#include "study/search/stages.h"
#include "tests/study/made_up_study.h"
#include "tests/support/catch.h"

using namespace cloze;

TEST_CASE("rungs of successive halving use the total budget exactly, as Hyperband's inner loop") {
  const auto anew = rungs_of(27, 3, 1, false);
  REQUIRE(anew.size() == 4);
  double whole = 0;
  for (size_t i = 0; i < anew.size(); ++i) {
    CHECK(anew[i].trials == static_cast<int64_t>(27 / std::pow(3, i)));
    CHECK(anew[i].used == Approx(std::pow(3, i) / 108));
    CHECK(anew[i].budget == Approx(0.25));
    whole += anew[i].budget;
  }
  CHECK(whole == Approx(1));
  const auto continued = rungs_of(27, 3, 2, true);  // 27 + 9 (3 - 1) + 3 (9 - 3) + (27 - 9) = 81
  CHECK(continued[3].used == Approx(27.0 / 162));
  CHECK(rungs_of(10, 4, 1, false)[1].trials == 2);
  CHECK(rungs_of(8, 0, 2, false)[0].used == Approx(1.0 / 16));
}

TEST_CASE("draws of a space follow their distributions, each key by a stream of its own") {
  const auto tree =
      ConfigTree::parse("a: {log: [1e-5, 1e-2]}\nb: {uniform: [2, 4]}\nc: {integers: [3, 6]}\nd: [x, yy]\n", "space");
  const AnyKeys space{tree.root().items}, alone{{tree.root().items[1]}};
  const int draws = 4000;
  double logs = 0, uniforms = 0;
  std::map<std::string, int> integers, words;
  for (uint64_t i = 0; i < draws; ++i) {
    const auto keys = draw_trial(space, 3, i);
    const double a = std::stod(keys[0].second.text), b = std::stod(keys[1].second.text);
    CHECK((a >= 1e-5 && a <= 1e-2 && b >= 2 && b <= 4));
    logs += std::log10(a) / draws;
    uniforms += b / draws;
    ++integers[keys[2].second.text], ++words[keys[3].second.text];
    CHECK(draw_trial(alone, 3, i)[0].second.text == keys[1].second.text);
  }
  CHECK(logs == Approx(-3.5).margin(4 * 3 / std::sqrt(12.0 * draws)));
  CHECK(uniforms == Approx(3).margin(4 * 2 / std::sqrt(12.0 * draws)));
  CHECK(integers.size() == 4);
  for (const auto& [value, times] : integers) CHECK(times == Approx(draws / 4).margin(4 * std::sqrt(draws * 3 / 16.0)));
  CHECK(words["yy"] == Approx(draws / 2).margin(4 * std::sqrt(draws / 4.0)));
}

TEST_CASE("successive halving gives the better trials more, and its table has the frontier") {
  const Study study(
      "space: {optimizer.learning_rate: {log: [1e-3, 1]}, model.num_hidden_layers: [1, 2]}\n"
      "trials: 9\nhalving: 3\nbudget: {steps: 2700}\n");
  auto stages = study.stages();
  REQUIRE(stages.rungs.size() == 3);
  CHECK(stages.plans[0].runs.size() == 9);
  CHECK(stages.plans[0].runs[0].config.train.budget.steps == 100);
  CHECK(stages.plans[2].waits_for == "rung 2");
  CHECK(study.run().done == 13);
  stages = study.stages();
  CHECK(stages.plans[1].runs[0].config.train.budget.steps == 300);
  CHECK(stages.plans[2].runs[0].config.train.budget.steps == 900);
  std::vector<double> rates;
  for (const auto& run : stages.plans[0].runs) rates.push_back(run.config.optimizer.learning_rate);
  std::sort(rates.begin(), rates.end());
  std::vector<double> kept;
  for (const auto& run : stages.plans[1].runs) kept.push_back(run.config.optimizer.learning_rate);
  std::sort(kept.begin(), kept.end());
  CHECK(kept == std::vector<double>(rates.begin(), rates.begin() + 3));  // the loss grows with the learning rate
  const auto trials = read_trials(stages);
  REQUIRE(trials.size() == 9);
  CHECK(trials[0].rung == 2);
  CHECK(trials[0].on_frontier);
  CHECK(trials[0].used.tokens == 90'000);
  const auto report = study.report();
  CHECK_THAT(notes_of(report), Catch::Contains("every rung trains its trials anew"));
  CHECK_THAT(to_text(report, 100), Catch::Contains("trial-") && Catch::Contains("90,000"));
  CHECK(to_json(report)["tables"][0]["rows"].size() == 9);
  CHECK_THAT(to_text(report, 100), Catch::Contains("Which trial has the lowest held-out mlm loss?"));
  study.run();
  CHECK(study.starts("rung-3/runs/" + trials[0].name + "/seed-1") == "started\n");
}

TEST_CASE("the trials of every rung are compared on the held-out documents that are for choosing") {
  const Study study(
      "space: {optimizer.learning_rate: {log: [1e-3, 1]}}\ntrials: 4\nhalving: 2\nbudget: {steps: 300}\n");
  study.run();
  const auto stages = study.stages();
  REQUIRE(stages.rungs.size() == 3);
  for (const auto rung : stages.rungs) {
    const auto& plan = stages.plans[rung];
    CHECK(plan.part == HeldOutPart::development);
    CHECK(documents_in(*finished_result(plan, plan.runs[0])) == Approx(128).margin(30));  // a quarter of 512
  }
}

TEST_CASE("a rung in which all trials fail is reported, and stops what follows until one is tried again") {
  const Study study(
      "set: {optimizer.learning_rate: 0.5}\nspace: {optimizer.weight_decay: {log: [1e-3, 1e-1]}}\n"
      "trials: 4\nhalving: 2\nbudget: {steps: 1200}\n");
  const std::string why = "a new try of a trial of rung 1, whose runs have all failed (see ";
  CHECK_THROWS_WITH(study.run(), Catch::Contains("rung 2 of 3 cannot start without " + why) &&
                                     Catch::Contains("try again with --only trial-1/1"));
  const auto stages = study.stages();
  CHECK_THAT(stages.plans[1].waits_for, Catch::Contains(why));
  CHECK(stages.plans[2].waits_for == "rung 2");
  CHECK_THAT(notes_of(study.report()), Catch::Contains("rung 2 of 3 waits for " + why));
  CHECK(study.run({"trial-1"}).failed == 1);
}

TEST_CASE("the page of a search draws every trial over its cost, and connects those of the frontier") {
  const Study study(
      "space: {optimizer.learning_rate: {log: [1e-3, 1]}}\ntrials: 9\nhalving: 3\nbudget: {steps: 2700}\n"
      "set:\n  model: {kind: gpt2, hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2}\n"
      "  objectives: [{kind: clm}]\nmetric: {objective: clm, unit: bits_per_byte}\n");
  study.run();
  const auto report = study.report();
  CHECK(report.unit == "bits per byte");
  const auto trials = read_trials(study.stages());
  REQUIRE(trials.size() == 9);
  int64_t on_frontier = 0;
  for (const auto& trial : trials) on_frontier += trial.on_frontier;
  const auto page = to_html(report);
  const auto count = [&](const std::string& part) {
    int64_t found = 0;
    for (auto at = page.find(part); at != std::string::npos; at = page.find(part, at + 1)) ++found;
    return found;
  };
  CHECK(count("<circle class=\"dot a1\"") == on_frontier);
  CHECK(count("<circle class=\"dot a2\"") == 9 - on_frontier);
  CHECK(count("<path class=\"line a1\"") == 1);
  CHECK(count("Which trial has the lowest held-out clm loss?") == 2);  // the title and the head
}

TEST_CASE("all rungs are scored on sequences that the trials of the first can read") {
  const Study study(
      "space: {optimizer.learning_rate: {log: [1e-3, 1e-1]}, data.max_seq_length: {integers: [16, 32]}}\n"
      "trials: 9\nhalving: 3\nbudget: {steps: 2700}\n");
  study.run();
  const auto stages = study.stages();
  int64_t shortest_of_first = 32;
  for (const auto& run : stages.plans[0].runs)
    shortest_of_first = std::min(shortest_of_first, run.config.data.max_seq_length);
  for (const auto& run : stages.plans[1].runs) CHECK(run.config.data.max_seq_length > shortest_of_first);
  for (const auto& plan : stages.plans)
    for (const auto& run : plan.runs) CHECK(run.config.evaluation.max_seq_length == shortest_of_first);
}

TEST_CASE("runs with a constant learning rate go on from their checkpoints, and pay for the difference alone") {
  const Study study(
      "set: {schedule.shape: constant, schedule.warmup: 10}\nspace: {optimizer.learning_rate: {log: [1e-3, 1e-1]}}\n"
      "trials: 4\nhalving: 2\nbudget: {steps: 1000}\n");
  study.run();
  const auto stages = study.stages();  // 4 + 2 (2 - 1) + 1 (4 - 2) = 8 parts of 125 steps
  CHECK(stages.plans[0].runs[0].config.train.budget.steps == 125);
  const auto& last = stages.plans[2].runs[0];
  CHECK(last.config.train.budget.steps == 500);
  CHECK(read_file(last.folder + "/starts") == "started\nresumed\nresumed\n");
  CHECK_THAT(notes_of(study.report()), Catch::Contains("go on from the checkpoints"));
}

TEST_CASE("a run goes on as a copy in which links are links, whatever they lead to") {
  namespace fs = std::filesystem;
  const Study study(
      "set: {schedule.shape: constant, schedule.warmup: 10}\nspace: {optimizer.learning_rate: {log: [1e-3, 1e-1]}}\n"
      "trials: 2\nhalving: 2\nbudget: {steps: 1000}\n");
  const auto first = study.stages().plans[0];
  run_study(first, {.program = BINARY_DIR "/fake_cloze", .jobs = 2, .only = {}});
  for (const auto& run : first.runs) fs::create_symlink(".", run.folder + "/itself");
  study.run();
  const auto last = study.stages().plans[1];
  CHECK(fs::is_symlink(last.runs[0].folder + "/itself"));
}

TEST_CASE("the frontier holds the trials that no other beats at the same cost or less") {
  std::vector<Trial> trials;
  for (const auto& [loss, tokens] : {std::pair{3.0, 100.0}, std::pair{2.5, 300.0}, std::pair{2.7, 300.0},
                                     std::pair{2.5, 400.0}, std::pair{3.5, 50.0}})
    trials.push_back({.name = "t", .loss = loss, .used = {.tokens = tokens}});
  mark_frontier(trials);
  std::vector<bool> marked;
  for (const auto& trial : trials) marked.push_back(trial.on_frontier);
  CHECK(marked == std::vector<bool>{true, true, false, false, true});
  const auto picture = frontier_chart(trials);
  size_t dots = 0;
  for (size_t at = 0; (at = picture.find("<circle", at)) != std::string::npos; ++at) ++dots;
  CHECK(dots == 5);
  CHECK_THAT(picture, Catch::Contains("held-out loss of trials by tokens") && Catch::Contains("cx=\"25.00%\""));
}

TEST_CASE("a run of a search that ends with a loss that is not finite counts as failed") {
  const Study tuned(two_arms + "seeds: 2\ntune: {optimizer.learning_rate: [0.75, 0.3]}\n");
  CHECK(tuned.run().done == 8);
  CHECK(config_of(tuned, "runs/b/seed-2").optimizer.learning_rate == 0.3);
  CHECK_THAT(notes_of(tuned.report()),
             Catch::Contains("arm a: 1 runs with optimizer.learning_rate: 0.75 failed in the search"));

  const Study searched(
      "space: {optimizer.learning_rate: [0.75, 0.3, 0.1]}\ntrials: 3\nhalving: 3\nbudget: {steps: 600}\n");
  searched.run();
  const auto stages = searched.stages();
  CHECK(stages.plans[1].runs[0].config.optimizer.learning_rate == 0.1);
  CHECK(read_trials(stages).size() == 2);
  CHECK_THAT(notes_of(searched.report()), Catch::Contains("counts as failed: its held-out loss is not finite"));
}
