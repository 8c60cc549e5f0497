#include "study/report/fit_report.h"
#include "tests/study/made_up_study.h"
#include "tests/support/catch.h"

using namespace cloze;

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
    CHECK(run.config.init.from == run.source());
    REQUIRE(run.config.objectives.size() == 1);
    CHECK(as<MlmConfig>(run.config.objectives[0]));
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

TEST_CASE("an arm without a head for the metric is told of probe_head where that helps") {
  const std::string discriminator =
      "arms: {a: {}, b: {objectives: [{kind: rtd}], model: {kind: electra, hidden_size: 32, num_hidden_layers: 1, "
      "num_attention_heads: 2, intermediate_size: 64}}}\nseeds: 2\nbudget: {steps: 100}\n";
  const auto hopeless = Study(discriminator + "metric: {objective: clm}\n").error();
  CHECK_THAT(hopeless, Catch::Contains("no head for clm") && !Catch::Contains("probe_head"));
}
