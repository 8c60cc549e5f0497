#include "study/search/tuning.h"
#include "tests/study/made_up_study.h"
#include "tests/support/catch.h"

using namespace cloze;

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

TEST_CASE("a run of a search whose held-out losses are lost is measured again before anything is chosen") {
  const Study study(two_arms + "seeds: 2\ntune: {optimizer.learning_rate: [0.1, 0.2]}\n");
  const auto all = study.run().done;
  const std::string run = "tuning/runs/a_learning_rate=0.1/seed-100001";
  study.folder.write("out/" + run + "/held_out.json", "{");
  CHECK(study.stages().plans[1].waits_for == "tuning");
  CHECK(study.run().done == all);
  CHECK(study.starts(run) == "started\nresumed\n");
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

TEST_CASE("the budget of tuning is shared by the runs of an arm") {
  const Study study(two_arms +
                    "seeds: 2\ntune: {optimizer.beta1: [0.8, 0.9]}\ntuning: {seeds: 3, budget: {steps: 60}}\n");
  const auto plan = study.stages().plans[0];
  CHECK(plan.seeds == std::vector<int64_t>{100'001, 100'002, 100'003});
  for (const auto& run : plan.runs) CHECK(run.config.train.budget.steps == 10);
}
