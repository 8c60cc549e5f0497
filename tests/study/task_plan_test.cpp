// Fine-tunings in studies: their plan, their spread, and the error that items add.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/contains.h"
#include "study/search/task_plan.h"
#include "study/report/task_report.h"
#include "study/measures/task_value.h"
#include "tests/study/made_up_study.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

struct TaskStudy : Study {
  explicit TaskStudy(const std::string& more = "") : Study(two_arms) {
    folder.write("cats.tsv", "text\tlabel\ncat\t1\nnone\t0\n");
    task("cats", "cats.tsv");
    task("dogs", "cats.tsv");
    write(two_arms + "seeds: 2\ntasks: {files: [cats.yaml, dogs.yaml], seeds: 3, like: turc-2019}\n" + more);
  }
  void task(const std::string& name, const std::string& data) const {
    folder.write(name + ".yaml", "task: " + name + "\nkind: classification\ndata: {train: " + data + ", test: " + data +
                                     ", text: text, label: label}\n");
  }
};

bool has(const std::vector<std::string>& options, const std::string& option) { return contains(options, option); }

}  // namespace

TEST_CASE("every run is fine-tuned on every task with every seed, by one recipe, in a folder of its own") {
  const TaskStudy study;
  const auto stages = study.stages();
  REQUIRE((stages.tasks == size_t{1}));
  CHECK(stages.comparison == 0);
  const auto& tasks = stages.plans[1];
  REQUIRE(tasks.runs.size() == 2 * 2 * 2 * 3);
  CHECK(task_names(tasks) == std::vector<std::string>{"cats", "dogs"});
  const auto& run = tasks.runs[1];
  CHECK(run.arm == "a, cats.2");
  CHECK(run.seed == 1);
  CHECK(run.folder == study.folder / "out/tasks/runs/a/seed-1/cats/seed-2");
  CHECK(run.source() == study.folder / "out/runs/a/seed-1");
  const auto command = run_command(run, "cloze");
  CHECK(command[1] == "finetune");
  CHECK(command[2] == run.source());
  CHECK((has(command, "turc-2019") && has(command, "train.seed=2") && has(command, "checkpoint.keep=1")));
  std::set<std::string> fingerprints;
  for (const auto& one : tasks.runs) fingerprints.insert(one.fingerprint);
  CHECK(fingerprints.size() == tasks.runs.size());
}

TEST_CASE("a fine-tuning has the threads that its terms name, else those of the study") {
  const TaskStudy study;
  const auto command_with = [&](const std::string& set) {
    study.write(two_arms + "seeds: 2\ntasks: {files: [cats.yaml], set: {" + set + "}}\n");
    const auto tasks = study.stages().plans[1];
    auto run = tasks.runs[0];
    run.config.train.threads = 1;
    return run_command(run, "cloze");
  };
  CHECK(has(command_with(""), "train.threads=1"));
  const auto command = command_with("train.threads: 3");
  CHECK((has(command, "train.threads=3") && !has(command, "train.threads=1")));
}

TEST_CASE("a task decides a study where its metric says so, and the others are secondary") {
  const TaskStudy study("metric: {task: dogs, better_by: 0.5}\n");
  const auto stages = study.stages();
  const auto plan = with_finetunings(stages.compared(), stages.plans[1]);
  CHECK(traits_of(plan.metric).unit == "points");
  CHECK(traits_of(plan.metric).higher_is_better);
  CHECK(traits_of(plan.metric).floor == "majority");
  const nlohmann::json row = {{"held_out_loss", 2.5}, {"held_out", {{"mlm_loss", 2.5}, {"mlm_baseline_loss", 6.5}}}};
  CHECK(curve_value(plan.metric, row)->floor == 0);  // word frequencies are no floor of a task
  REQUIRE(plan.secondary.size() == 1);
  CHECK(traits_of(plan.secondary[0]).name == "cats");
  CHECK(missing_finetunings(plan, plan.metric, plan.runs[0]) == "0 of 3 fine-tunings on dogs are done");
  CHECK(missing_finetunings(plan, plan.secondary[0], plan.runs[0]) == "0 of 3 fine-tunings on cats are done");
  CHECK(missing_finetunings(plan, LossMetric{}, plan.runs[0]).empty());
}

TEST_CASE("tasks of a study that cannot be are refused before any run") {
  CHECK_THAT(TaskStudy("metric: {task: cat}\n").error(),
             Catch::Contains("metric.task is cat, and the tasks are cats, dogs; did you mean 'cats'?"));
  CHECK_THAT(TaskStudy("probe_head: {share: 0.1}\nbudget: {steps: 100}\n").error(),
             Catch::Contains("'tasks' do not go with 'space' and 'probe_head'"));
  CHECK_THAT(TaskStudy("metric: {task: cats}\ntune: {optimizer.beta1: [0.8, 0.9]}\n").error(),
             Catch::Contains("'tune' chooses by a loss or a suite, and 'metric' is the figure of a task"));
  CHECK_THAT(TaskStudy("metric: {task: cats}\nsplit: true\n").error(),
             Catch::Contains("'split' scores runs that are not fine-tuned, and 'metric' is the figure of a task"));
  const TaskStudy seeded;
  seeded.write(two_arms + "tasks: {files: [cats.yaml], set: {train.seed: 3}}\n");
  CHECK_THAT(seeded.error(), Catch::Contains("'train.seed' would be replaced by what the study says; `tasks:"));
  const TaskStudy tuned;
  tuned.write(two_arms + "tasks: {files: [cats.yaml], tune: {optimizer.beta: [0.1, 0.2]}}\n");
  CHECK_THAT(tuned.error(), Catch::Contains("study.yaml:") && Catch::Contains(": unknown key 'optimizer.beta'"));
  const TaskStudy twice;
  twice.folder.write("dogs.yaml", read_file(twice.folder / "cats.yaml"));
  CHECK_THAT(twice.error(),
             Catch::Contains("dogs.yaml: is a task 'cats', as ") && Catch::Contains("give it another one, `task:`"));
  const TaskStudy missing;
  missing.task("dogs", "none.tsv");
  CHECK_THAT(missing.error(), Catch::Contains("none.tsv is not there"));
  CHECK_THAT(TaskStudy("metric: {task: cats, objective: mlm}\n").error(),
             Catch::Contains("names a task (task: cats) and a loss or a suite; keep one of them"));
  CHECK_THAT(TaskStudy("metric: {task: cats, unit: bits_per_byte}\n").error(),
             Catch::Contains("figures of tasks are in points, so leave it out"));
}

TEST_CASE("a changed file of a task makes its fine-tunings other ones") {
  const TaskStudy study;
  const auto before = study.stages().plans[1].runs[0].fingerprint;
  study.folder.write("more.tsv", "text\tlabel\ncat\t1\nnone\t0\nkitten\t1\n");
  study.task("cats", "more.tsv");
  CHECK(study.stages().plans[1].runs[0].fingerprint != before);
  const auto of_folder = [](const std::string& text) {  // of texts
    const TaskStudy made;
    made.folder.write("texts/yes/1.txt", text);
    made.folder.write("cats.yaml",
                      "task: cats\nkind: classification\ndata: {train: texts, test: texts, format: folders}\n");
    return made.stages().plans[1].runs[0].fingerprint;
  };
  CHECK(of_folder("cat") == of_folder("cat"));
  CHECK(of_folder("cat") != of_folder("cow"));
  const auto with_base = [&](const std::string& kind) {  // of another file
    study.folder.write("common.yaml", "metric: " + kind + "\ndata: {text: text, label: label}\n");
    study.folder.write("cats.yaml",
                       "base: common.yaml\ntask: cats\nkind: classification\ndata: {train: cats.tsv, test: "
                       "cats.tsv}\n");
    return study.stages().plans[1].runs[0].fingerprint;
  };
  CHECK(with_base("accuracy") != with_base("f1_macro"));
}

TEST_CASE("runs without a study are named by the shortest ends of their paths that tell them apart") {
  const TaskStudy study;
  const FinetuningTerms terms{.files = {study.folder / "cats.yaml"}, .seeds = 1};
  const auto arms_of_runs = [&](const std::vector<std::string>& runs) {
    std::vector<std::string> arms;
    for (const auto& arm : task_plan(runs, terms, study.folder / "table").arms) arms.push_back(arm.name);
    return arms;
  };
  CHECK(arms_of_runs({"runs/a", "runs/b/step-00000010"}) ==
        std::vector<std::string>{"a, cats", "b-step-00000010, cats"});
  CHECK(arms_of_runs({"s/low/seed-1", "s/high/seed-1"}) ==
        std::vector<std::string>{"low/seed-1, cats", "high/seed-1, cats"});
  CHECK_THROWS_WITH(arms_of_runs({"runs/a", "runs/a/"}), Catch::Contains("is named twice"));
}

TEST_CASE("a run that has not judged its test part is refused, with what judges it") {
  const TempDir folder;
  CHECK_THAT(error_of([&] { outcome_of(folder.path); }),
             Catch::Contains("summary.json: is missing, so that the run has no figure of its task; resume the run"));
  folder.write("summary.json", "{}");
  CHECK_THAT(error_of([&] { outcome_of(folder.path); }), Catch::Contains("says nothing of the test part of a task"));
  for (const auto* task : {R"({"test": {}, "metric": 5})", R"({"test": [1], "metric": "f1"})"}) {
    folder.write("summary.json", R"({"task": )" + std::string(task) + "}");
    CHECK_THAT(error_of([&] { outcome_of(folder.path); }), Catch::Contains("says nothing of the test part of a task"));
  }
  // No exception of the JSON library: the name of a metric is no path, and what is no truth is none.
  folder.write("summary.json", R"({"task": {"test": {}, "metric": "~x", "learned": "x"}})");
  CHECK_THROWS_AS(outcome_of(folder.path), DataError);
}

TEST_CASE("the spread is split into runs and fine-tunings by the analysis of variance") {
  const auto spread = split_spread({{1, 3}, {5, 7}});  // mean squares 16 and 2
  CHECK(spread.of_finetunings == Approx(std::sqrt(2.0)));
  CHECK(spread.of_runs == Approx(std::sqrt(7.0)));
  CHECK(split_spread({{1, 3}, {2, 2}}).of_runs == 0);
  CHECK(std::isnan(split_spread({{1}, {2}}).of_finetunings));
}

TEST_CASE("an arm's rank is the mean over tasks, and equal means share theirs") {
  const auto on = [](const std::string& arm, const std::string& task, const std::string& metric, double value) {
    return ArmOnTask{.arm = arm, .task = task, .metric = metric, .values = {{value}}, .runs = {"1"}};
  };
  const auto table = rank_table({on("a", "t", "accuracy", 90), on("b", "t", "accuracy", 90), on("a", "u", "mse", 0.5),
                                 on("b", "u", "mse", 0.25)});
  CHECK(heads_of(table) == std::vector<std::string>{"arm", "t accuracy %", "u mse", "mean", "average rank"});
  CHECK(table.rows[0] == std::vector<std::string>{"a", "90.00", "0.5000", "90.00", "1.75"});
  CHECK(table.rows[1] == std::vector<std::string>{"b", "90.00", "0.2500", "90.00", "1.25"});
}

TEST_CASE("the mean over tasks has an interval over the runs that have all tasks") {
  const std::vector<std::string> runs{"1", "2", "3"};
  const ArmOnTask first{.arm = "a", .task = "t", .metric = "f1", .values = {{1, 3}, {4}, {3}}, .runs = runs};
  ArmOnTask second{.arm = "a", .task = "u", .metric = "f1", .values = {{2}, {5}, {0}}, .runs = {"2", "3", "1"}};
  // Means of runs are 1, 3 and 4: mean 8 / 3, sd 1.5275, and Student's quantile is 4.3027.
  CHECK(rank_table({first, second}).rows[0][3] == "2.67 [0.00, 6.46]");
  second.runs[1] = "4";                                                   // which has not the first task
  CHECK(rank_table({first, second}).rows[0][3] == "2.00 [0.00, 14.71]");  // of 1 and 3, the mean as its interval
  second.runs = {"4", "5", "6"};
  CHECK(rank_table({first, second}).rows[0][3].empty());
}

TEST_CASE("the mean over tasks is no more certain than its items allow, where all runs have it alike") {
  ArmOnTask one{
      .arm = "a", .task = "t", .metric = "accuracy", .values = {{100}, {100}}, .runs = {"1", "2"}, .items = 20};
  CHECK(rank_table({one}).rows[0][2] == "100.00 [83.16, 100.00]");  // Clopper and Pearson's of 20 of 20
  one.metric = "mcc";
  one.values = {{0}, {0}};
  CHECK(rank_table({one}).rows[0][2] == "0.00 [-16.84, 16.84]");
}

TEST_CASE("an arm that is held apart has no rank, and moves none of the others") {
  const auto on = [](const std::string& arm, double value, const std::string& changed = "") {
    return ArmOnTask{
        .arm = arm, .task = "t", .metric = "f1", .changed = changed, .values = {{value}}, .runs = {arm + "/1"}};
  };
  const auto table = rank_table({on("a", 80), on("b", 90), on("b, changed at step 5", 99, "changed at step 5 with x")});
  CHECK(table.rows[0] == std::vector<std::string>{"a", "80.00", "80.00", "2.00"});
  CHECK(table.rows[1] == std::vector<std::string>{"b", "90.00", "90.00", "1.00"});
  CHECK(table.rows[2] == std::vector<std::string>{"b, changed at step 5", "99.00", "99.00", ""});
}

TEST_CASE("an undefined figure ranks last, and has no mean") {
  const auto on = [](const std::string& arm, double value) {
    return ArmOnTask{.arm = arm, .task = "t", .metric = "pearson", .values = {{value}}, .runs = {"1"}};
  };
  const auto table = rank_table({on("a", std::nan("")), on("b", -5)});
  CHECK(table.rows[0] == std::vector<std::string>{"a", "undefined", "", "2.00"});
  CHECK(table.rows[1] == std::vector<std::string>{"b", "-5.00", "-5.00", "1.00"});
}

TEST_CASE("of a figure that is no mean the items' error is that on the same draws, without what seeds have already") {
  const ExampleLosses zero{.draws = {0, 0, 0}, .drawn_of = 40}, up{.draws = {1, 2, 3}, .drawn_of = 40},
      down{.draws = {3, 2, 1}, .drawn_of = 40};
  const auto alike = example_error({&up, &up}, {&zero, &zero});
  // The draws move both runs alike; they vary by 39 / 40 of what samples of 40 items do.
  CHECK(alike.error == Approx(std::sqrt(40.0 / 39)));
  CHECK(alike.count == 40);
  CHECK(example_error({&up, &down}, {&zero, &zero}).error == 0);  // they move each run alone
  const ExampleLosses other{.draws = {0, 0, 0}, .drawn_of = 39};
  CHECK_THAT(error_of([&] { example_error({&up, &up}, {&zero, &other}); }),
             Catch::Contains("values on draws of 39 and of 40 examples; judge them on the same test part"));
  const ExampleLosses none;
  CHECK(example_error({&none, &none}, {&none, &none}).count == 0);
}

TEST_CASE("a table of runs and tasks has its values as numbers, and what its intervals are computed from") {
  const ArmOnTask arm{
      .arm = "wiki", .task = "cats", .metric = "accuracy", .values = {{80, 82.5}}, .runs = {"runs/wiki"}};
  const auto difference = compare_seeds({82, 84}, {80, 82.5}, {.arms = 2}, {.error = 0.5, .freedom = 99, .count = 100});
  const auto numbers = numbers_of({arm}, {{.task = "cats", .run = "other", .difference = difference}});
  CHECK(numbers["arms"][0]["values"] == nlohmann::json{{80, 82.5}});
  CHECK(numbers["arms"][0]["figure"] == "accuracy");
  const auto& one = numbers["differences"][0];
  CHECK(one["run"] == "other");
  CHECK(one["mean"] == difference.mean);
  CHECK(one["sd"] == difference.sd);
  CHECK(one["examples"]["freedom"] == 99);
  CHECK(one["interval"][1] == difference.interval->high);
}
