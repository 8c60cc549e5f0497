// Studies of several stages (tuning, halving, probes, single streams), whose runs are made up by fake_cloze.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "study/fit_points.h"
#include "study/plan_table.h"
#include "study/report.h"
#include "study/search.h"
#include "study/stages.h"
#include "study/tuning.h"
#include "study/variance.h"
#include "tests/study/study_files.h"
#include "tests/support/catch.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

struct Study {
  explicit Study(const std::string& yaml) {
    set_log_level(LogLevel::quiet);
    folder.write("base.yaml", std::string(small_run_yaml) + "optimizer: {weight_decay: 0.03}\n");
    write(yaml);
  }
  void write(const std::string& yaml) const { folder.write("study.yaml", "study: s\nbase: base.yaml\n" + yaml); }
  Stages stages() const { return make_stages(folder / "study.yaml", folder / "out"); }
  StudyProgress run(std::vector<std::string> only = {}, StaleRuns stale = StaleRuns::refuse) const {
    return run_stages(folder / "study.yaml", folder / "out",
                      {.program = BINARY_DIR "/fake_cloze", .jobs = 2, .only = only, .stale = stale});
  }
  StudyReport report() const { return make_report(stages()); }
  std::string error() const {
    return error_of([&] { stages(); });
  }
  std::string starts(const std::string& run) const { return read_file(folder / ("out/" + run + "/starts")); }
  TempDir folder;
};

std::string notes_of(const StudyReport& report) {
  std::string text;
  for (const auto& note : report.notes) text += note + "\n";
  return text;
}

const std::string two_arms = "arms: {a: {}, b: {train.batch_size: 8}}\n";

/// A config of a run, as it was written for its process.
RunConfig config_of(const Study& study, const std::string& run) {
  return decode<RunConfig>(ConfigTree::load(study.folder / ("out/" + run + ".yaml")));
}

}  // namespace

TEST_CASE("streams that are named change with the seed, the others keep the first seed") {
  const Study study(two_arms + "seeds: [4, 7]\nvary: [order, dropout]\n");
  const auto plan = study.stages().compared();
  for (const auto& run : plan.runs) {
    auto train = run.config.train;
    CHECK(rng_of(train, RandomStream::init).seed() == 4);
    CHECK(rng_of(train, RandomStream::masking).seed() == 4);
    CHECK(rng_of(train, RandomStream::order).seed() == static_cast<uint64_t>(run.seed));
    CHECK(rng_of(train, RandomStream::dropout).seed() == static_cast<uint64_t>(run.seed));
  }
  study.run();
  CHECK_THAT(notes_of(study.report()), Catch::Contains("seeds vary order, dropout only"));
}

TEST_CASE("mistakes in the streams of a study are answered before any run") {
  CHECK_THAT(Study(two_arms + "vary: [ordr]\n").error(), Catch::Contains("ordr") && Catch::Contains("order"));
  CHECK_THAT(Study(two_arms + "vary: [init, init]\n").error(), Catch::Contains("'vary' names a stream twice"));
  CHECK_THAT(Study(two_arms + "seeds: 1\nsplit: true\n").error(),
             Catch::Contains("'split' needs the spread over seeds"));
}

TEST_CASE("a list of one seed, which reads like a number of seeds, is refused") {
  CHECK_THAT(Study(two_arms + "seeds: [7]\n").error(),
             Catch::Contains("study.yaml:4:8: 'seeds' is a list of one seed; write a number for how many"));
  CHECK_THAT(Study(two_arms + "tune: {optimizer.beta1: [0.8, 0.9]}\ntuning: {seeds: [9]}\n").error(),
             Catch::Contains("'tuning.seeds' is a list of one seed"));
  CHECK(Study(two_arms + "seeds: [7, 9]\n").stages().compared().seeds == std::vector<int64_t>{7, 9});
}

TEST_CASE("a split runs every arm with each stream alone, and its table has the spread that each makes") {
  const Study study("arms: {a: {}, b: {optimizer.learning_rate: 0.2}}\nseeds: 6\nsplit: true\n");
  const auto stages = study.stages();
  REQUIRE(stages.split);
  CHECK(stages.plans[*stages.split].runs.size() == 2 * 4 * 5);  // the first seed is shared with the comparison
  study.run();
  const auto report = study.report();
  REQUIRE(report.tables.size() == 1);
  const auto& rows = report.tables[0].rows;
  REQUIRE(rows.size() == 12);
  CHECK(rows[0][1] == "all streams");
  const auto made = [](const char* name, double sd) {
    std::vector<double> values;
    for (uint64_t seed = 1; seed <= 6; ++seed) values.push_back(sd * Rng(seed).stream(name).normal());
    return summarize(values).sd;
  };
  CHECK(rows[1][1] == "init");
  CHECK(rows[1][2] == "6");
  CHECK(std::stod(rows[1][3]) == Approx(made("init", 0.02)).epsilon(0.01));
  CHECK(std::stod(rows[2][3]) == Approx(made("order", 0.01)).epsilon(0.01));
  CHECK(std::stod(rows[3][3]) == Approx(0).margin(1e-12));
  CHECK(std::stod(rows[4][3]) == Approx(made("dropout", 0.001)).epsilon(0.01));
  const double whole = std::hypot(made("init", 0.02), made("order", 0.01), made("dropout", 0.001));
  CHECK(std::stod(rows[5][3]) == Approx(whole).epsilon(0.01));
  CHECK(std::stod(rows[1][5]) == Approx(100 * std::pow(made("init", 0.02) / whole, 2)).margin(0.51));
}

TEST_CASE("intervals of standard deviations are those of the chi-square distribution") {
  const auto interval = sd_interval(2, 5, 0.95);  // scipy.stats.chi2.ppf([0.975, 0.025], 4)
  CHECK(interval.low == Approx(2 * std::sqrt(4 / 11.143286781877796)).epsilon(1e-12));
  CHECK(interval.high == Approx(2 * std::sqrt(4 / 0.48441855708793014)).epsilon(1e-12));
  CHECK_THROWS_WITH(sd_interval(2, 1, 0.95), Catch::Contains("run more seeds"));
}

TEST_CASE("every arm is tuned over the same values on seeds of its own, and the comparison runs with its best") {
  const Study study(
      "arms: {a: {}, b: {optimizer.learning_rate: 0.2}}\nseeds: 3\nbudget: {steps: 10}\n"
      "tune: {optimizer.weight_decay: [0.01, 0.03, 0.05]}\n");
  auto stages = study.stages();
  REQUIRE(stages.plans.size() == 2);
  CHECK(stages.plans[0].runs.size() == 6);
  CHECK(stages.plans[1].waits_for == "tuning");
  for (const auto& run : stages.plans[0].runs) CHECK(run.seed == 100'001);
  CHECK(study.run().done == 12);
  CHECK(config_of(study, "runs/b/seed-3").optimizer.weight_decay == 0.03);
  CHECK(config_of(study, "runs/b/seed-3").optimizer.learning_rate == 0.2);
  const auto report = study.report();
  REQUIRE(report.tables.size() == 1);
  REQUIRE(report.tables[0].rows.size() == 6);
  CHECK(report.tables[0].rows[4] == std::vector<std::string>{"b", "0.03", report.tables[0].rows[4][2], "yes"});
  CHECK_THAT(notes_of(report), Catch::Contains("6 runs, 6,000 tokens") &&
                                   Catch::Contains("no learning rate was tuned: a ran with 1e-04; b ran with 0.2") &&
                                   !Catch::Contains("edge"));
  study.run();
  CHECK(study.starts("tuning/runs/a_weight_decay=0.01/seed-100001") == "started\n");
}

TEST_CASE("a search that ends at the edge of its values, or in a tie, says so") {
  const Study study(two_arms + "seeds: 2\ntune: {optimizer.learning_rate: [0.1, 0.2], optimizer.beta1: [0.8, 0.9]}\n");
  study.run();
  const auto report = study.report();
  CHECK(report.tables[0].rows.size() == 8);
  CHECK_THAT(notes_of(report),
             Catch::Contains("arm a: the best optimizer.learning_rate 0.1 is at the edge of its values; widen them") &&
                 Catch::Contains("arm b: optimizer.learning_rate: 0.1, optimizer.beta1: 0.8 and "
                                 "optimizer.learning_rate: 0.1, optimizer.beta1: 0.9 tie; the first was taken") &&
                 !Catch::Contains("no learning rate was tuned"));
}

TEST_CASE("values that fail in the search rank last, and a killed run of it is resumed before anything is chosen") {
  const Study study(two_arms + "seeds: 2\ntune: {optimizer.learning_rate: [0.25, 0.5]}\n");
  auto progress = study.run();
  CHECK(progress.failed == 4);  // 0.25 is killed once, 0.5 is never finite
  CHECK(study.stages().plans[1].waits_for == "tuning");
  study.run();
  CHECK(study.starts("tuning/runs/a_learning_rate=0.25/seed-100001") == "started\nresumed\n");
  CHECK(study.stages().plans[1].waits_for.empty());
  CHECK(config_of(study, "runs/a/seed-1").optimizer.learning_rate == 0.25);
  CHECK_THAT(notes_of(study.report()),
             Catch::Contains("arm a: 1 runs with optimizer.learning_rate: 0.5 failed in the search"));
}

TEST_CASE("a search in which all runs of an arm fail is reported, and stops what follows until one is tried again") {
  const Study study(
      "arms: {a: {optimizer.learning_rate: 0.5}, b: {}}\nseeds: 2\ntune: {optimizer.beta1: [0.8, 0.9]}\n");
  const std::string why = "a new try of arm 'a' in the search, whose runs have all failed (see ";
  const std::string mend = "; try again with --only 'a, beta1=0.8/100001')";
  CHECK_THROWS_WITH(study.run(), Catch::Contains("runs cannot start without " + why) && Catch::Contains(mend));
  CHECK_THAT(study.stages().plans[1].waits_for, Catch::Contains(why));
  CHECK_THAT(notes_of(study.report()), Catch::Contains("the runs wait for " + why) && Catch::Contains(mend));
  CHECK(study.run({"a, beta1=0.8"}).failed == 1);
  CHECK(study.starts("tuning/runs/a_beta1=0.8/seed-100001") == "started\nresumed\n");
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

TEST_CASE("a search whose runs are kept though the study has changed decides what follows") {
  const std::string tune = "seeds: 2\ntune: {optimizer.weight_decay: [0.01, 0.03, 0.05]}\n";
  const Study study(two_arms + tune);
  study.run();
  study.write("set: {optimizer.epsilon: 1e-7}\n" + two_arms + tune);
  CHECK_THROWS_WITH(study.run(), Catch::Contains("or leave them as they are with --keep"));
  CHECK(study.stages().plans[1].waits_for == "tuning");
  CHECK(study.run({}, StaleRuns::keep).done == 10);
  const auto stages = study.stages();
  CHECK(stages.plans[1].waits_for.empty());
  for (const auto& plan : stages.plans) CHECK(is_settled(plan));
  CHECK(study.run().done == 4);  // the search is over
  CHECK_THAT(notes_of(study.report()), Catch::Contains("run b/2 was made from another config") &&
                                           Catch::Contains("kept as it is; it counts like the others"));
  CHECK(study.starts("tuning/runs/a_weight_decay=0.01/seed-100001") == "started\n");
  CHECK(study.starts("runs/b/seed-2") == "started\n");
}

TEST_CASE("mistakes in what is tuned are answered before any run") {
  const auto error = [](const std::string& rest) { return Study(two_arms + "seeds: 2\n" + rest).error(); };
  CHECK_THAT(error("tune: {optimizer.learning_rat: [0.1, 0.2]}\n"),
             Catch::Contains("study.yaml:5") && Catch::Contains("did you mean 'learning_rate'?"));
  CHECK_THAT(error("tune: {optimizer.learning_rate: []}\n"), Catch::Contains("must be a list of at least two values"));
  CHECK_THAT(error("tune: {optimizer.learning_rate: [0.1]}\n"), Catch::Contains("a single one belongs under `set:`"));
  CHECK_THAT(error("tune: {optimizer.learning_rate: 0.1}\n"), Catch::Contains("must be a list of at least two values"));
  CHECK_THAT(error("tuning: {seeds: 2}\n"), Catch::Contains("name keys and their values under `tune:`"));
  CHECK_THAT(error("tune: {optimizer.beta1: [0.8, 0.9]}\ntuning: {seeds: [2, 9]}\n"),
             Catch::Contains("tuning.seeds names 2, a seed of the comparison"));
  CHECK_THAT(error("tune: {optimizer.beta1: [0.8, 0.9]}\ntuning: {budget: {steps: 1}}\n"),
             Catch::Contains("tuning.budget over the 2 runs of an arm is not one step for each"));
  CHECK_THAT(error("tune: {optimizer.beta1: [0.8, 0.9]}\ntuning: {budget: {tokens: 300}}\n"),
             Catch::Contains("is not one step of 256 tokens for each run"));
}

TEST_CASE("the budget of tuning is shared by the runs of an arm") {
  const Study study(two_arms +
                    "seeds: 2\ntune: {optimizer.beta1: [0.8, 0.9]}\ntuning: {seeds: 3, budget: {steps: 60}}\n");
  const auto plan = study.stages().plans[0];
  CHECK(plan.seeds == std::vector<int64_t>{100'001, 100'002, 100'003});
  for (const auto& run : plan.runs) CHECK(run.config.train.budget.steps == 10);
}

TEST_CASE("a limit of which a stage would have nothing left is refused") {
  const auto study = two_arms + "seeds: 2\ntune: {optimizer.beta1: [0.8, 0.9]}\n";
  CHECK_THAT(Study(study + "tuning: {seeds: 3, budget: {steps: 5, tokens: 60000}}\n").error(),
             Catch::Contains("budget.steps is 5, and a share of 0.167 of it is less than one") &&
                 Catch::Contains("raise it, or remove it"));
  CHECK(Study(study + "tuning: {seeds: 3, budget: {steps: 6, tokens: 60000}}\n").error() == "");
}

TEST_CASE("what stages make of the study file is no change of what it declared") {
  const auto declared_otherwise = [](const std::string& yaml) {
    const Study study(yaml + "metric: {objective: mlm, better_by: 0.01}\n");
    study.run();
    CHECK_THAT(notes_of(study.report()), !Catch::Contains("declared otherwise"));
    const auto hash = study.report().declaration;
    study.write(yaml + "metric: {objective: mlm, better_by: 0.02}\n");
    CHECK(study.report().declaration != hash);
    return notes_of(study.report());
  };
  const auto change =
      Catch::Contains("declared otherwise: metric.better_by was 0.01 before the first run, and is 0.02");
  CHECK_THAT(declared_otherwise(two_arms + "seeds: 2\nbudget: {steps: 40}\ntune: {optimizer.beta1: [0.8, 0.9]}\n"
                                           "tuning: {budget: {steps: 60}}\n"),
             change && !Catch::Contains("declared otherwise: budget"));
  CHECK_THAT(declared_otherwise("space: {optimizer.learning_rate: {log: [1e-3, 1e-1]}}\ntrials: 4\nhalving: 2\n"
                                "budget: {steps: 1200}\n"),
             change && !Catch::Contains("declared otherwise: budget"));
}

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
  CHECK(trials[0].tokens == 90'000);
  const auto report = study.report();
  CHECK_THAT(notes_of(report), Catch::Contains("every rung trains its trials anew"));
  CHECK_THAT(to_text(report, 100), Catch::Contains("trial-") && Catch::Contains("90,000"));
  CHECK(to_json(report)["tables"][0]["rows"].size() == 9);
  CHECK_THAT(to_text(report, 100), Catch::Contains("Which trial has the lowest held-out mlm loss?"));
  study.run();
  CHECK(study.starts("rung-3/runs/" + trials[0].name + "/seed-1") == "started\n");
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
  CHECK(study.starts("rung-3/" + last.folder) == "started\nresumed\nresumed\n");
  CHECK_THAT(notes_of(study.report()), Catch::Contains("go on from the checkpoints"));
}

TEST_CASE("the frontier holds the trials that no other beats at the same cost or less") {
  std::vector<Trial> trials;
  for (const auto& [loss, tokens] : {std::pair{3.0, 100.0}, std::pair{2.5, 300.0}, std::pair{2.7, 300.0},
                                     std::pair{2.5, 400.0}, std::pair{3.5, 50.0}})
    trials.push_back({.name = "t", .loss = loss, .tokens = tokens});
  mark_frontier(trials);
  std::vector<bool> marked;
  for (const auto& trial : trials) marked.push_back(trial.on_frontier);
  CHECK(marked == std::vector<bool>{true, true, false, false, true});
  const auto picture = frontier_svg(trials);
  size_t dots = 0;
  for (size_t at = 0; (at = picture.find("<circle", at)) != std::string::npos; ++at) ++dots;
  CHECK(dots == 5);
  CHECK_THAT(picture, Catch::Contains("held-out loss of trials by tokens") && Catch::Contains("cx=\"25.00%\""));
}

TEST_CASE("mistakes in a space are answered before any run") {
  const auto error = [](const std::string& space, const std::string& rest = "trials: 4\nbudget: {steps: 100}\n") {
    return Study("space: " + space + "\n" + rest).error();
  };
  CHECK_THAT(error("{optimizer.learning_rat: [0.1, 0.2, 0.3, 0.4]}"),
             Catch::Contains("study.yaml:3:9") && Catch::Contains("did you mean 'learning_rate'?"));
  CHECK_THAT(error("{optimizer.learning_rate: {lug: [1, 2]}}"), Catch::Contains("did you mean 'log'?"));
  CHECK_THAT(error("{optimizer.learning_rate: 0.1}"), Catch::Contains("give a list of values"));
  CHECK_THAT(error("{optimizer.learning_rate: [0.1]}"), Catch::Contains("at least two values"));
  CHECK_THAT(error("{optimizer.learning_rate: {log: [0, 1]}}"), Catch::Contains("a logarithm needs numbers above 0"));
  CHECK_THAT(error("{optimizer.learning_rate: {log: [1, 0.1]}}"), Catch::Contains("the first must be the smaller"));
  CHECK_THAT(error("{optimizer.learning_rate: {log: [1]}}"), Catch::Contains("must be [low, high]"));
  CHECK_THAT(error("{model.num_hidden_layers: {integers: [1.2, 1.8]}}"),
             Catch::Contains("no whole number lies between"));
  CHECK_THAT(error("{optimizer.learning_rate: {log: [a, 1]}}"), Catch::Contains("limits that are numbers, not 'a'"));
  CHECK_THAT(error("{optimizer.learning_rate: [0.1, 0.2]}"), Catch::Contains("only 2 different configs"));
  const std::string rates = "{optimizer.learning_rate: {log: [1e-4, 1e-2]}}";
  CHECK_THAT(error(rates, "budget: {steps: 100}\n"), Catch::Contains("'trials' is 0"));
  CHECK_THAT(error(rates, "trials: 4\n"), Catch::Contains("'budget' is missing"));
  CHECK_THAT(error(rates, "trials: 4\nhalving: 1\nbudget: {steps: 100}\n"), Catch::Contains("'halving' is 1"));
  CHECK_THAT(error(rates, "trials: 2\nhalving: 3\nbudget: {steps: 100}\n"),
             Catch::Contains("'halving' keeps one of 3 trials, and 'trials' is 2"));
  CHECK_THAT(error(rates, "trials: 9\nhalving: 3\nbudget: {steps: 20}\n"),
             Catch::Contains("not one step for each run of the first rung"));
  CHECK_THAT(error(rates, "trials: 9\nhalving: 3\nbudget: {tokens: 3000}\n"),
             Catch::Contains("is not one step of 128"));
  CHECK_THAT(error(rates, "trials: 4\nbudget: {steps: 100}\n" + two_arms), Catch::Contains("trials instead of arms"));
  CHECK_THAT(Study(two_arms + "trials: 4\n").error(), Catch::Contains("name its keys under `space:`"));
}

TEST_CASE("with a probe_head every arm is scored by a new head on its backbone, trained in the last share") {
  const Study study(
      "arms: {own: {}, other: {objectives: [{kind: rtd}]}}\nseeds: 2\nbudget: {steps: 100}\n"
      "probe_head: {share: 0.1}\n");
  const auto stages = study.stages();
  REQUIRE(stages.plans.size() == 2);
  CHECK(stages.comparison == 1);
  for (const auto& run : stages.plans[0].runs) CHECK(run.config.train.budget.steps == 90);
  for (const auto& run : stages.plans[1].runs) {
    CHECK(run.config.train.budget.steps == 10);
    CHECK(run.config.init.probe);
    CHECK(run.config.init.from == run.source);
    REQUIRE(run.config.objectives.size() == 1);
    CHECK(std::holds_alternative<MlmConfig>(run.config.objectives[0]));
  }
  CHECK(study.run({"own/1"}).done == 2);  // the run and its probe
  CHECK(study.run().done == 8);
  const auto report = study.report();
  CHECK_THAT(notes_of(report), Catch::Contains("scored by a new head for mlm") && Catch::Contains("10 %") &&
                                   Catch::Contains("no learning rate was tuned: every arm ran with 1e-04"));
  for (const auto& run : report.runs) {  // 100 tokens a step, 90 steps of the network and 10 of its head
    CHECK(run.result.tokens == 10'000);
    CHECK(run.result.step == 100);
    CHECK(run.result.seconds == Approx(30));
    CHECK(run.curve.front().tokens > 9000);
  }
  CHECK_THROWS_WITH(points_of_study(study.folder / "study.yaml", study.folder / "out", SizeCount::all),
                    Catch::Contains("study.yaml: has a 'probe_head'"));
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

TEST_CASE("the spread of the variance leaves out runs whose loss is not finite") {
  const Study study("arms: {a: {}, b: {optimizer.learning_rate: 0.75}}\nseeds: 3\nsplit: true\n");
  study.run();
  const auto report = study.report();
  const auto& rows = report.tables[0].rows;
  REQUIRE(rows.size() == 12);
  CHECK(rows[0][2] == "3");
  for (size_t row = 6; row < 11; ++row) CHECK(rows[row][2] == "0");
}

TEST_CASE("a search of heads goes on without the runs that failed before their heads") {
  const Study study(two_arms +
                    "seeds: 2\nbudget: {steps: 100}\nprobe_head: {share: 0.1}\n"
                    "tune: {optimizer.learning_rate: [0.1, 0.5]}\n");
  const auto progress = study.run();
  CHECK(progress.done == 12);   // 2 runs of the search and 4 that are compared, each with its head
  CHECK(progress.failed == 4);  // 0.5 is never finite
  const auto stages = study.stages();
  REQUIRE(stages.plans.size() == 4);
  const auto& heads = stages.plans[1];
  CHECK(is_settled(heads));
  for (const auto& run : heads.runs) {
    const auto status = status_of(heads, run);
    CHECK((status.state == RunState::failed) == run.arm.ends_with("0.5"));
    if (status.state == RunState::failed)
      CHECK_THAT(status.message,
                 Catch::Contains("its source failed: ") && Catch::Contains("the loss is not finite at step 3"));
  }
  CHECK(config_of(study, "runs/b/seed-2").optimizer.learning_rate == 0.1);
}

TEST_CASE("a probe_head that a network cannot have is refused before any run") {
  const std::string metric = "probe_head: {share: 0.1}\nbudget: {steps: 100}\nmetric: {objective: clm}\n";
  CHECK_THAT(Study(two_arms + metric).error(), Catch::Contains("arm 'a' cannot have a probe_head for clm") &&
                                                   Catch::Contains("needs a generative model"));
  CHECK_THAT(Study(two_arms + "probe_head: {share: 0.001}\nbudget: {steps: 100}\n").error(),
             Catch::Contains("probe_head.share 0.001 of the budget is not one step"));
}

TEST_CASE("stages run in their order, whoever starts them, and a name of no stage is answered") {
  const Study study(two_arms + "seeds: 2\ntune: {optimizer.beta1: [0.8, 0.9]}\n");
  CHECK_THROWS_WITH(study.run({"aa"}), Catch::Contains("--only aa"));
  study.run({"a, beta1=0.8"});
  CHECK(std::filesystem::exists(study.folder / "out/tuning/runs/a_beta1=0.8/seed-100001/starts"));
  CHECK(!std::filesystem::exists(study.folder / "out/tuning/runs/b_beta1=0.8"));
  CHECK(!std::filesystem::exists(study.folder / "out/runs"));
  CHECK_THAT(notes_of(study.report()), Catch::Contains("the search for the tuned keys is not over: 3 of 4 runs"));
  CHECK(study.run().done == 8);
}

TEST_CASE("the runs wait for a search that another process ends, and none is done twice") {
  const Study study(two_arms + "seeds: 2\ntune: {optimizer.learning_rate: [0.125, 0.3]}\n");
  study.run({"a, learning_rate=0.3", "b, learning_rate=0.3", "b, learning_rate=0.125"});
  const pid_t other = fork();
  if (other == 0) {
    study.run({"a, learning_rate=0.125"});  // takes most of a second
    _exit(0);
  }
  const auto begun = study.folder / "out/tuning/runs/a_learning_rate=0.125/seed-100001/starts";
  for (int wait = 0; wait < 500 && !std::filesystem::exists(begun); ++wait) usleep(10'000);
  const auto progress = study.run();
  CHECK(progress.done + progress.elsewhere == 8);  // the one elsewhere was counted before it ended
  wait_for(other);
  for (const std::string run : {"runs/a/seed-1", "runs/b/seed-2", "tuning/runs/a_learning_rate=0.125/seed-100001"})
    CHECK(study.starts(run) == "started\n");
}

TEST_CASE("the runs wait for a network of the search that another process trains, and its head is made") {
  const Study study(two_arms +
                    "seeds: 2\nbudget: {steps: 100}\nprobe_head: {share: 0.1}\n"
                    "tune: {optimizer.learning_rate: [0.125, 0.3]}\n");
  study.run({"a, learning_rate=0.3", "b, learning_rate=0.3", "b, learning_rate=0.125"});
  const pid_t other = fork();
  if (other == 0) {
    study.run({"a, learning_rate=0.125"});  // takes most of a second
    _exit(0);
  }
  const auto begun = study.folder / "out/tuning/runs/a_learning_rate=0.125/seed-100001/starts";
  for (int wait = 0; wait < 500 && !std::filesystem::exists(begun); ++wait) usleep(10'000);
  study.run();
  wait_for(other);
  for (const std::string run :
       {"tuning/probe/runs/a_learning_rate=0.125/seed-100001", "runs/a/seed-1", "probe/runs/b/seed-2"})
    CHECK(study.starts(run) == "started\n");
  for (const auto& plan : study.stages().plans) CHECK(is_settled(plan));
}

TEST_CASE("plans of a search and of a split name no baseline, and one seed of theirs is no warning") {
  const Probe probe{.parameters = 100, .checkpoint_bytes = 1200, .seconds = 1, .tokens = 100, .flops = 1e9};
  const auto text_of = [&](const Plan& plan) {
    return plan_table(plan, std::vector<Probe>(plan.arms.size(), probe), 1, 100);
  };
  const Study study(two_arms + "seeds: 2\nsplit: true\ntune: {optimizer.beta1: [0.8, 0.9]}\n");
  const auto stages = study.stages();
  for (const size_t at : {*stages.tuning, *stages.split}) {
    REQUIRE(stages.plans[at].seeds.size() == 1);
    CHECK_THAT(text_of(stages.plans[at]), !Catch::Contains("(baseline)") && !Catch::Contains("warning"));
  }
  CHECK_THAT(text_of(stages.compared()), Catch::Contains("a (baseline)") && !Catch::Contains("warning"));
  CHECK_THAT(text_of(Study(two_arms + "seeds: 1\n").stages().compared()),
             Catch::Contains("warning   one seed gives no interval"));
}

TEST_CASE("tables have the same cells in every form") {
  const Table table{.title = "T", .header = {"a", "b_c"}, .rows = {{"1 ± 2", "x|y, \"z\" & 5 %"}}};
  CHECK(to_text(table) == "T\n\na      b_c\n1 ± 2  x|y, \"z\" & 5 %\n");
  CHECK(to_markdown(table) == "## T\n\n| a | b\\_c |\n|---|---|\n| 1 ± 2 | x\\|y, \"z\" &amp; 5 % |\n");
  StudyReport report;
  report.tables = {table};
  CHECK_THAT(to_csv(report),
             Catch::Contains("\ntable,T,") && Catch::Contains("\"a: 1 ± 2; b_c: x|y, \"\"z\"\" & 5 %\"\n"));
  CHECK_THAT(to_latex(table),
             Catch::Contains("a & b\\_c \\\\") &&
                 Catch::Contains("1 $\\pm$ 2 & x\\textbar{}y, \\textquotedbl{}z\\textquotedbl{} \\& 5 \\%"));
  CHECK(to_json(table)["rows"][0]["a"] == "1 ± 2");
}
