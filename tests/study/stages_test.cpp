#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "study/costs/costs.h"
#include "tests/study/made_up_study.h"
#include "tests/support/catch.h"
#include "tests/support/processes.h"
#include "tests/support/table.h"

using namespace cloze;

TEST_CASE("a study that cannot be is refused with the place and the mend before any run") {
  for (const auto& row : table_of_tests("study/bad_studies.tsv")) {
    INFO(row.at(0));
    check_is(Study(row.at(0)).error(), row.at(1));
  }
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
  const pid_t other = start_child([&] { study.run({"a, learning_rate=0.125"}); });  // takes most of a second
  const auto begun = study.folder / "out/tuning/runs/a_learning_rate=0.125/seed-100001/starts";
  CHECK(wait_until([&] { return std::filesystem::exists(begun); }));
  const auto progress = study.run();
  CHECK(progress.done + progress.elsewhere == 8);  // the one elsewhere was counted before it ended
  CHECK(wait_for(other) == 0);
  for (const std::string run : {"runs/a/seed-1", "runs/b/seed-2", "tuning/runs/a_learning_rate=0.125/seed-100001"})
    CHECK(study.starts(run) == "started\n");
}

TEST_CASE("the runs wait for a network of the search that another process trains, and its head is made") {
  const Study study(two_arms +
                    "seeds: 2\nbudget: {steps: 100}\nprobe_head: {share: 0.1}\n"
                    "tune: {optimizer.learning_rate: [0.125, 0.3]}\n");
  study.run({"a, learning_rate=0.3", "b, learning_rate=0.3", "b, learning_rate=0.125"});
  const pid_t other = start_child([&] { study.run({"a, learning_rate=0.125"}); });  // takes most of a second
  const auto begun = study.folder / "out/tuning/runs/a_learning_rate=0.125/seed-100001/starts";
  CHECK(wait_until([&] { return std::filesystem::exists(begun); }));
  study.run();
  CHECK(wait_for(other) == 0);
  for (const std::string run :
       {"tuning/probe/runs/a_learning_rate=0.125/seed-100001", "runs/a/seed-1", "probe/runs/b/seed-2"})
    CHECK(study.starts(run) == "started\n");
  for (const auto& plan : study.stages().plans) CHECK(is_settled(plan));
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
