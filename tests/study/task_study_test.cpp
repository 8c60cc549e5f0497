// Studies with tasks from the first run to the report: fine-tunings that are searched, killed, failed and resumed.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/contains.h"
#include "core/fingerprint.h"
#include "core/text.h"
#include "models/backbone_config.h"
#include "run/config/load_config.h"
#include "run/run_files.h"
#include "study/costs/costs.h"
#include "study/execution/runner.h"
#include "study/search/task_plan.h"
#include "study/report/report_rows.h"
#include "study/search/tuning.h"
#include "tasks/rows/prepared_task.h"
#include "tests/objectives/store.h"
#include "tests/study/made_up_study.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// Two arms of two seeds, judged by the task cats, with dogs beside it; arm b is best at a rate of 1e-4, a at 1e-3.
struct JudgedStudy : Study {
  explicit JudgedStudy(const std::string& of_tasks, const std::string& more = "") : Study(two_arms) {
    folder.write("train.tsv", table(20));
    folder.write("valid.tsv", table(10));
    folder.write("test.tsv", table(60));
    task("cats");
    task("dogs");
    write(two_arms + "seeds: 2\nmetric: {task: cats, better_by: 0.5}\ntasks: {files: [cats.yaml, dogs.yaml]" +
          of_tasks + "}\n" + more);
  }
  static std::string table(int lines) {
    std::string text = "text\tlabel\n";
    for (int i = 0; i < lines; ++i) text += "a " + std::to_string(i) + (i % 2 == 0 ? "\tno\n" : "\tyes\n");
    return text;
  }
  /// Texts whose words tell their labels: of a test part of four, three.
  void write_words() const {
    std::string train = "text\tlabel\n";
    for (int i = 0; i < 20; ++i) train += i % 2 == 0 ? "the cat sleeps\tno\n" : "the dog barks\tyes\n";
    folder.write("train.tsv", train + "the cat naps\tno\n");
    folder.write("test.tsv", "text\tlabel\na cat purrs\tno\na dog howls\tyes\nthe dog ate\tyes\nbirds\tyes\n");
  }
  void task(const std::string& name) const {
    folder.write(name + ".yaml", "task: " + name +
                                     "\nkind: classification\nmetric: accuracy\ndata: {train: train.tsv, valid: "
                                     "valid.tsv, test: test.tsv, text: text, label: label}\n");
  }
  /// Puts a mark for fake_cloze into the folder of a pretrained run, which is trained first.
  void mark(const std::string& run, const std::string& what) const {
    if (!std::filesystem::exists(folder / ("out/runs/" + run))) study_runs();
    folder.write("out/runs/" + run + "/" + what, "");
  }
  void study_runs() const {
    for (const auto* one : {"a/1", "a/2", "b/1", "b/2"}) this->run({one});
  }
};

/// Three rates for two seeds of fine-tuning, and two rates for one.
const std::string searched = ", seeds: 2, tune: {optimizer.learning_rate: [1e-5, 1e-4, 1e-3]}, tuning_seeds: 1";
const std::string searched_little = ", seeds: 1, tune: {optimizer.learning_rate: [1e-4, 1e-3]}";

/// The provenance.json of a run that somebody went on with in another way.
const std::string changed_by_hand =
    R"({"history": [{"step": 5, "changed": [{"key": "optimizer.beta1", "was": "0.9", "is": "0.8"}]}]})";

const Table& table_of(const StudyReport& report, const std::string& title) {
  for (const auto& table : report.tables)
    if (table.title == title) return table;
  FAIL("there is no table " << title);
  return report.tables.front();
}

/// The options of the fine-tunings of an arm on a task.
std::vector<std::string> options_of(const Plan& plan, const std::string& arm, const std::string& task) {
  for (const auto& run : plan.runs)
    if (run.finetuning.arm == arm && run.finetuning.task == task) return run.finetuning.options;
  return {};
}

bool has(const std::vector<std::string>& options, const std::string& option) { return contains(options, option); }

}  // namespace

TEST_CASE("the search for the fine-tunings tries the same for every run, with seeds that the verdict never uses") {
  const JudgedStudy study(searched);
  const auto stages = study.stages();
  REQUIRE((stages.task_tuning == size_t{1} && stages.tasks == size_t{2}));
  const auto& search = stages.plans[1];
  REQUIRE(search.runs.size() == 2 * 2 * 2 * 3);  // arms, seeds, tasks, rates
  CHECK(search.runs[0].arm == "a, cats.100001, learning_rate=1e-5");
  CHECK(search.runs[0].folder == study.folder / "out/task-tuning/runs/a/seed-1/cats/seed-100001/learning_rate=1e-5");
  CHECK(has(run_command(search.runs[0], "cloze"), "optimizer.learning_rate=1e-5"));
  CHECK(has(run_command(search.runs[0], "cloze"), "train.seed=100001"));
  CHECK(stages.plans[2].waits_for == "task tuning");
  CHECK(study.run({"a/1"}).done == 1);  // and what waits for the search is not begun
}

TEST_CASE("where tasks decide, the progress of a study has their figures, and no losses of different objectives") {
  const JudgedStudy study(", seeds: 1");
  study.run();
  const auto table_of_stage = [&](size_t stage) {
    const auto stages = study.stages();
    std::vector<RunStatus> statuses;
    for (const auto& run : stages.plans[stage].runs) statuses.push_back(status_of(stages.plans[stage], run));
    return progress_table(stages.plans[stage], statuses, 100);
  };
  CHECK(table_of_stage(0) ==
        "seed 1        2       \na    done     done    \nb    done     done    \n4 of 4 runs done\n");
  CHECK_THAT(table_of_stage(1),
             Catch::Contains("a, cats.1 80.00    80.00") && Catch::Contains("8 of 8 runs done (accuracy)\n"));
  const auto run = study.folder / "out/tasks/runs/a/seed-1/cats/seed-1/run.yaml";
  CHECK(decode<RunConfig>(ConfigTree::load(run)).init.from == study.folder / "out/runs/a/seed-1/step-00000100");
}

TEST_CASE("each arm is fine-tuned with the rate that is best for it on the valid part, and the report says all of it") {
  const JudgedStudy study(searched);
  const auto progress = study.run();
  CHECK(progress.failed == 0);
  CHECK(progress.waiting == 0);
  const auto stages = study.stages();
  for (const auto& plan : stages.plans) CHECK(is_settled(plan));
  CHECK(has(options_of(stages.plans[2], "a", "cats"), "optimizer.learning_rate=1e-3"));
  CHECK(has(options_of(stages.plans[2], "b", "dogs"), "optimizer.learning_rate=1e-4"));
  const auto report = study.report();
  CHECK(metric_title(report) == "cats accuracy");
  const auto& tuned = table_of(report, "What was tuned of the fine-tunings");
  CHECK(heads_of(tuned) ==
        std::vector<std::string>{"task", "arm", "optimizer.learning_rate", "on the valid part", "chosen"});
  REQUIRE(tuned.rows.size() == 2 * 2 * 3);
  CHECK((tuned.rows[2][2] == "1e-3" && tuned.rows[2][4] == "yes"));
  CHECK((tuned.rows[7][1] == "b" && tuned.rows[7][2] == "1e-4" && tuned.rows[7][4] == "yes"));
  const auto notes = notes_of(report);
  CHECK_THAT(notes,
             Catch::Contains("fine-tunings of each arm on each task have the best of 3 combinations by the mean on "
                             "the valid part, over 6 tries for every arm, with seeds 100001, which the verdict "
                             "does not see: 24 fine-tunings, 16,800 tokens, 168 GFLOPs, 48s"));
  CHECK_THAT(notes, Catch::Contains("chosen for the fine-tunings on cats: a: optimizer.learning_rate: 1e-3; b: "
                                    "optimizer.learning_rate: 1e-4"));
  CHECK_THAT(notes,
             Catch::Contains("arm a on cats: the best optimizer.learning_rate 1e-3 is at the edge of its values"));
  CHECK_THAT(notes, !Catch::Contains("arm b on cats: the best"));
  CHECK_THAT(notes, Catch::Contains("the search chose optimizer.learning_rate for each arm and task"));
  for (const auto& form :
       {to_text(report, 200), to_markdown(report), to_csv(report), to_html(report), to_json(report).dump()})
    CHECK_THAT(form, Catch::Contains("rate: 1e-3; b: optimizer.learning"));
  CHECK_THAT(to_latex(report), Catch::Contains("Fine-tuned with 2 seeds by the recipe that each task file names"));
  CHECK_THAT(to_latex(report), Catch::Contains("learning") && Catch::Contains("1e-3"));
}

TEST_CASE("the best of a search is the lowest of an error and the highest of other figures, and what failed is last") {
  const auto candidate = [](std::vector<double> values, int64_t failed = 0) {
    return Candidate{.value = summarize(values), .failed = failed};
  };
  const std::vector<Candidate> candidates{candidate({0.1}, 1), candidate({0.4, 0.2}), candidate({0.2}),
                                          candidate({0.4})};
  CHECK(best_candidate(candidates, TaskMetric{.task = "t", .name = "mse", .is_error = true}) == 2);
  CHECK(best_candidate(candidates, TaskMetric{.task = "t", .name = "accuracy"}) == 3);
}

TEST_CASE("a search that was killed goes on, and what it has chosen stays when the study is run again") {
  const JudgedStudy study(searched_little);
  study.mark("a/seed-1", "is killed on cats");
  const auto first = study.run();
  CHECK(first.failed > 0);
  CHECK(study.starts("task-tuning/runs/a/seed-1/cats/seed-100001/learning_rate=1e-4") == "started\n");
  CHECK_FALSE(read_task_tuning(study.stages().plans[1]));
  CHECK_THAT(notes_of(study.report()), Catch::Contains("the search for the fine-tunings is not over: 2 of 16 runs"));
  study.run();
  CHECK(study.starts("task-tuning/runs/a/seed-1/cats/seed-100001/learning_rate=1e-4") == "started\nresumed\n");
  study.run();  // of the fine-tunings themselves those of the marked run were killed
  CHECK(study.starts("tasks/runs/a/seed-1/cats/seed-1") == "started\nresumed\n");
  CHECK(study.starts("tasks/runs/b/seed-1/cats/seed-1") == "started\n");
  const auto report = study.report();
  for (const auto& arm : report.arms) CHECK(arm.runs.size() == 2);
  CHECK(study.run().failed == 0);
}

TEST_CASE("fine-tunings that are there from before a search are not taken for those that it will ask for") {
  const JudgedStudy study(", seeds: 1");
  study.run();
  CHECK(study.report().arms[0].runs.size() == 2);
  const auto yaml = read_file(study.folder / "study.yaml");
  const std::string before = ", seeds: 1";
  study.folder.write("study.yaml", std::string(yaml).replace(yaml.find(before), before.size(), searched_little));
  const auto report = study.report();
  CHECK(report.arms[0].runs.empty());
  CHECK(std::ranges::none_of(report.tables, [](const Table& table) { return table.title == "Tasks"; }));
  CHECK_THAT(notes_of(report), Catch::Contains("the search for the fine-tunings is not over: 16 of 16 runs"));
  CHECK_THAT(error_of([&] { study.run(); }), Catch::Contains("these runs were made from another config"));
}

TEST_CASE("an arm all of whose fine-tunings fail in the search is tried again before any is compared") {
  const JudgedStudy study(searched_little);
  study.mark("b/seed-1", "fails on dogs");
  study.mark("b/seed-2", "fails on dogs");
  CHECK_THAT(
      error_of([&] { study.run(); }),
      Catch::Contains("tasks cannot start without a new try of arm 'b' on dogs in the search, whose runs have all "
                      "failed"));
  for (const auto* run : {"1", "2"})
    std::filesystem::remove(study.folder / ("out/runs/b/seed-" + std::string(run) + "/fails on dogs"));
  std::vector<std::string> again;
  const auto stages = study.stages();
  for (const auto& one : stages.plans[1].runs)
    if (one.finetuning.task == "dogs" && one.finetuning.arm == "b") again.push_back(one.arm);
  study.run(again);
  CHECK(study.run().failed == 0);
  CHECK(study.report().arms[1].secondary.at(0).summary.count == 2);
}

TEST_CASE("a fine-tuning that fails on another task leaves its run in the table, without a value there, and is said") {
  const JudgedStudy study(", seeds: 2, like: google-bert");
  study.mark("b/seed-2", "fails on dogs");
  CHECK(study.run().failed == 2);
  const auto report = study.report();
  CHECK(report.arms[1].runs.size() == 2);
  CHECK(report.arms[1].difference.seeds == 2);
  REQUIRE(report.arms[1].secondary.size() == 1);
  CHECK(report.arms[1].secondary[0].summary.count == 1);
  CHECK(report.arms[0].secondary[0].summary.count == 2);
  const auto notes = notes_of(report);
  CHECK_THAT(notes, Catch::Contains("run b/2: 0 of 2 fine-tunings on dogs are done; it has no value there"));
  CHECK_THAT(notes, Catch::Contains("fine-tuning b, dogs.1/2 failed: ") && Catch::Contains("the task is too hard"));
  CHECK_THAT(notes, Catch::Contains("by the recipe google-bert; its rates were not searched for any arm"));
}

TEST_CASE("a run whose fine-tunings on the task that decides are not done is not in the table") {
  const JudgedStudy study(", seeds: 2");
  study.mark("b/seed-2", "fails on cats");
  study.run();
  const auto report = study.report();
  CHECK(report.arms[1].runs.size() == 1);
  const auto notes = notes_of(report);
  CHECK_THAT(notes, Catch::Contains("run b/2 failed: 0 of 2 fine-tunings on cats are done; it is not in the table"));
  const auto begin = notes.find("over the one seed that both have, on which a has ");
  REQUIRE(begin != notes.npos);
  CHECK_THAT(notes.substr(begin, notes.find('\n', begin) - begin),
             Catch::Contains(" and b has ") && !Catch::Contains("±"));
}

TEST_CASE("fine-tunings that did not learn are marked in the table and named, and count like the others") {
  const JudgedStudy study(", seeds: 2");
  study.mark("b/seed-1", "learns nothing of cats");
  study.run();
  const auto report = study.report();
  CHECK(report.arms[1].runs.size() == 2);
  const auto& table = table_of(report, "Tasks");
  CHECK(table.rows[1][0] == "b");
  CHECK_THAT(table.rows[1][1], Catch::EndsWith(" *"));
  CHECK_THAT(table.rows[0][1], !Catch::Contains("*"));
  CHECK(table_of(report, "Spread of fine-tuning").rows[2].back() == "2");
  CHECK_THAT(notes_of(report),
             Catch::Contains(
                 "did not learn, not being shown to be better than the floor on the valid part: b on cats (2 of 4)") &&
                 Catch::Contains("test parts: cats of 60 items, dogs of 60 items\n"));
  CHECK_THAT(to_latex(report),
             Catch::Contains("\\item {*} did not learn, not being shown to be better than the floor"));
}

TEST_CASE("a run that was changed while it was pretrained is held apart in the tables of tasks, as in that of runs") {
  const JudgedStudy study(", seeds: 1");
  study.run();
  study.folder.write("out/runs/b/seed-2/provenance.json", changed_by_hand);
  const auto report = study.report();
  const auto name = "b, changed at step 5";
  REQUIRE(report.arms.size() == 3);
  CHECK(report.arms[2].name == name);
  const auto& rows = table_of(report, "Tasks").rows;
  REQUIRE(rows.size() == 5);  // the floors are the last two
  CHECK((rows[1][0] == "b" && !rows[1].back().empty()));
  CHECK((rows[2][0] == name && !rows[2][1].empty() && rows[2].back().empty()));
  CHECK(table_of(report, "Spread of fine-tuning").rows[2][2] == "1");
}

TEST_CASE("a fine-tuning that lost its rows is reported without them, and made good by running the study again") {
  const JudgedStudy study(", seeds: 1");
  study.run();
  const auto whole = to_json(study.report());
  const auto run = study.folder / "out/tasks/runs/a/seed-1/cats/seed-1";
  std::filesystem::remove_all(run + "/task");
  CHECK_NOTHROW(study.report());
  const auto stages = study.stages();
  const auto& tasks = stages.plans[*stages.tasks];
  const auto lost = std::ranges::find_if(tasks.runs, [&](const auto& one) { return one.folder == run; });
  REQUIRE(lost != tasks.runs.end());
  CHECK(status_of(tasks, *lost).lost_result == run + "/task: has no rows of a task; restore it, or remove " + run +
                                                   " and run the study again, which fine-tunes anew");
  CHECK(study.run().failed == 0);
  CHECK(to_json(study.report()) == whole);
}

TEST_CASE("a fine-tuning of a search that was changed on its way is no evidence for the values that it began with") {
  const JudgedStudy study(searched_little);
  study.run();
  CHECK(has(options_of(study.stages().plans[2], "a", "cats"), "optimizer.learning_rate=1e-3"));
  study.folder.write("out/task-tuning/runs/a/seed-1/cats/seed-100001/learning_rate=1e-3/provenance.json",
                     changed_by_hand);
  CHECK(has(options_of(study.stages().plans[2], "a", "cats"), "optimizer.learning_rate=1e-4"));
  CHECK_THAT(
      notes_of(study.report()),
      Catch::Contains("fine-tuning a, cats.100001, learning_rate=1e-3/1 of the search was changed at step 5 with "
                      "optimizer.beta1 0.8 (was 0.9), and counts as one that failed"));
}

TEST_CASE("tries of a search that could not begin are not counted as tries") {
  const JudgedStudy study(searched_little);
  study.write(
      "arms: {a: {}, b: {train.batch_size: 8}, c: {optimizer.learning_rate: 0.5}}\nseeds: 2\nmetric: {task: "
      "cats, better_by: 0.5}\ntasks: {files: [cats.yaml, dogs.yaml]" +
      searched_little + "}\n");
  study.run();  // all runs of c fail
  const auto notes = notes_of(study.report());
  CHECK_THAT(notes,
             Catch::Contains("over 0 to 4 tries for an arm, since runs of pretraining failed, with seeds 100001"));
  CHECK_THAT(notes, Catch::Contains("which the verdict does not see: 16 fine-tunings, "));
}

TEST_CASE("fine-tunings that were kept as they are when their task changed are said") {
  const JudgedStudy study(", seeds: 1");
  study.run();
  study.folder.write("cats.yaml", read_file(study.folder / "cats.yaml") + "# the same in other words\n");
  study.run({}, StaleRuns::keep);
  CHECK_THAT(notes_of(study.report()),
             Catch::Contains("tasks: a, cats.1/1 (and 3 more) was made from another config, "
                             "text, tokenizer or version, or from other weights, and kept as it is"));
}

namespace {

/// Stands for `cloze benchmark`: keeps the configs that it is given, whose rows have to be there, in `probed`; refuses
/// batches of 9. Steps of fine-tunings are cheaper than others.
constexpr const char* fake_benchmark = R"sh(#!/bin/bash
folder="$(dirname "$0")/probed"
mkdir -p "$folder"
cp "$2" "$folder/$(ls "$folder" | wc -l).yaml"
tokens=$(sed -n '/^data:/,/^[^ ]/s/^  tokens: "*\([^"]*\)"*$/\1/p' "$2")
if [ ! -f "$tokens/manifest.json" ]; then echo "cloze: error: no rows in '$tokens'" >&2; exit 1; fi
if grep -q 'batch_size: 9' "$2"; then echo 'cloze: error: an odd batch' >&2; exit 2; fi
gflop=5
if grep -q 'kind: classification' "$2"; then gflop=2; fi
echo '{"parameters": 10, "checkpoint_bytes": 120, "peak_rss_mb": 50, "ms_per_step": 30, "ms_undisturbed": 20,
"share_of_cores": 1, "tokens_per_step": 100, "predicted_tokens_per_step": 15, "gflop_per_step": '$gflop',
"sequences_per_epoch": 40, "words_per_epoch": 0, "held_out_tokens": 640}' | tr -d '\n'
)sh";

/// A study whose fine-tunings are probed; their rows have four tokens.
struct ProbedStudy : JudgedStudy {
  ProbedStudy(const std::string& arms, const std::string& of_tasks) : JudgedStudy(", seeds: 1") {
    tiny_store(text);
    write("arms: {" + arms + "}\nset: {data.tokens: " + (text / "tokens") +
          "}\nseeds: 2\ntasks: {files: [cats.yaml], seeds: 1, " + of_tasks + "}\n");
    folder.write("cloze", fake_benchmark);
    std::filesystem::permissions(folder / "cloze", std::filesystem::perms::owner_all);
    std::filesystem::create_directories(folder / "out");
  }
  std::vector<FinetuningCost> costs() const {
    Prober prober(folder / "out", folder / "cloze", 1, [](const auto&) {});
    return finetuning_costs(stages().compared(), prober);
  }
  /// The configs that were probed.
  std::vector<RunConfig> probed() const {
    std::vector<RunConfig> configs;
    for (int i = 0; std::filesystem::exists(folder / concat("probed/", i, ".yaml")); ++i)
      configs.push_back(decode<RunConfig>(ConfigTree::load(folder / concat("probed/", i, ".yaml"))));
    return configs;
  }
  TempDir text;
};

}  // namespace

TEST_CASE("fine-tunings of networks that are alike cost the same, whatever these were trained on, and share a probe") {
  const ProbedStudy study(
      "a: {objectives.0.mlm_probability: 0.15}, b: {objectives.0.mlm_probability: 0.5, train.batch_size: 8}, c: "
      "{model.hidden_size: 64}",
      "set: {train.batch_size: 4, train.budget.epochs: 1}");
  const auto costs = study.costs();
  REQUIRE(costs.size() == 3);
  const auto& [a, b, c] = std::tie(costs[0], costs[1], costs[2]);
  CHECK((a.arm == "a" && b.arm == "b" && c.arm == "c"));
  CHECK((a.flops == b.flops && a.seconds == b.seconds && a.disk_bytes == b.disk_bytes));
  // Twenty items of four tokens, and in a third of the time ten and sixty that are judged.
  CHECK((a.items == 20 && a.steps == 5 && a.tokens == Approx(80)));
  CHECK(a.flops == Approx((80 + 280 / 3.0) * 2e9 / 100));
  CHECK(a.seconds > (80 + 280 / 3.0) * 0.02 / 100);
  CHECK(a.disk_bytes == Approx(2 * 120));  // the last checkpoint, and one that is being written
  const auto probed = study.probed();
  REQUIRE(probed.size() == 2);
  CHECK((probed[0].task.name == "cats" && probed[0].train.batch_size == 4 && probed[0].init.from.empty()));
  CHECK(backbone_of(probed[1].model).hidden_size == 64);
  CHECK(study.costs().at(0).flops == a.flops);
  CHECK(study.probed().size() == 2);
  study.folder.write("train.tsv", JudgedStudy::table(22));
  study.costs();
  CHECK(study.probed().size() == 4);  // of other rows
}

TEST_CASE("the costs of fine-tunings are those of all items, of which a thousand are made into rows") {
  const ProbedStudy study("a: {}, b: {optimizer.learning_rate: 0.1}",
                          "set: {train.batch_size: 4, train.budget.epochs: 1}");
  study.folder.write("train.tsv", JudgedStudy::table(2500));
  const auto cost = study.costs().at(0);
  CHECK((cost.items == 2500 && cost.steps == 625 && cost.tokens == Approx(10'000)));
  CHECK(cost.flops == Approx((10'000 + 280 / 3.0) * 2e9 / 100));
  CHECK(study.probed().at(0).checkpoint.every == 625);
}

TEST_CASE("the costs of fine-tunings whose passes and batches are searched are the mean, with a probe a batch") {
  const ProbedStudy study("a: {}, b: {train.batch_size: 8}",
                          "tune: {train.batch_size: [4, 2], train.budget.epochs: [1, 3], optimizer.learning_rate: "
                          "[1e-4, 1e-3]}");
  const auto costs = study.costs();
  REQUIRE(costs.size() == 2);
  for (const auto& cost : costs) CHECK(cost.steps == Approx(15));  // 5 and 15, 10 and 30
  CHECK(study.probed().size() == 2);
}

TEST_CASE("fine-tunings that cannot be are refused with the arm and the task, before any run") {
  CHECK(error_of([] { ProbedStudy("a: {}, b: {train.batch_size: 8}", "set: {train.batch_size: 9}").costs(); }) ==
        "arm 'a' on cats: an odd batch");
  CHECK_THAT(error_of([] { ProbedStudy("a: {}, b: {train.batch_size: 8}", "set: {freeze.layers: 9}").costs(); }),
             Catch::Contains("freeze.layers is 9, and the network has 1 layer"));
  const std::string arms = "a: {}, b: {train.batch_size: 8}", of_tasks = "set: {train.batch_size: 4}";
  const ProbedStudy other(arms, of_tasks + "}\nmetric: {task: cats, figure: acuracy");
  CHECK_THAT(error_of([&] { other.costs(); }),
             Catch::Contains("study.yaml: compares by cats acuracy, and the task has no such figure; did you mean "
                             "'accuracy'?; it has accuracy, "));
  const ProbedStudy misspelt(arms, of_tasks);
  auto text = read_file(misspelt.folder / "cats.yaml");
  replace_all(text, "metric: accuracy", "metric: acuracy");
  misspelt.folder.write("cats.yaml", text);
  CHECK_THAT(error_of([&] { misspelt.costs(); }), Catch::Contains("cats.yaml: 'metric' is acuracy, and the figures"));
}

TEST_CASE("a run whose fine-tuning diverged has no value on the task, which is said, and the report has the others") {
  const JudgedStudy study(", seeds: 1");
  study.mark("b/seed-1", "diverges on cats");
  study.mark("b/seed-2", "diverges on dogs");
  CHECK(study.run().failed == 0);
  const auto report = study.report();
  REQUIRE(report.arms[1].runs.size() == 1);
  CHECK(report.arms[1].runs[0].seed == 2);
  CHECK_THAT(notes_of(report), Catch::Contains("is not finite; it is not in the table"));
  CHECK_THAT(notes_of(report), Catch::Contains("did not learn"));
  CHECK(report.arms[1].secondary.at(0).summary.count == 0);
}

TEST_CASE("suites that the runs answer stand in the table of the tasks") {
  const JudgedStudy study(", seeds: 1", "set: {evaluation.suites: [pairs]}\n");
  study.run();
  const auto report = study.report();
  const auto& table = table_of(report, "Tasks and suites");
  const auto heads = heads_of(table);
  CHECK(heads == std::vector<std::string>{"arm", "cats accuracy %", "dogs accuracy %", "mean", "average rank",
                                          "pairs accuracy %", "pairs spearman"});
  for (const auto& row : table.rows)
    for (const auto& cell : row) CHECK(cell.empty() == (row[0].starts_with("floor: ") && &cell > &row[3]));
  CHECK_THAT(to_markdown(report), Catch::Contains("cats accuracy %") && Catch::Contains("pairs accuracy %"));
  CHECK_THAT(notes_of(report), Catch::Contains("mean and average rank of the table of tasks and suites are over the"));
}

TEST_CASE("the table of the tasks ends with the majority of each test part, and what words of the training part tell") {
  const JudgedStudy study(", seeds: 1");
  study.write_words();
  study.run();
  const auto report = study.report();
  const auto& rows = table_of(report, "Tasks").rows;
  REQUIRE(rows.size() == 4);
  CHECK(rows[2] == std::vector<std::string>{"floor: majority", "75.00", "75.00", "75.00", ""});
  CHECK(rows[3] == std::vector<std::string>{"floor: words", "75.00", "75.00", "75.00", ""});
  CHECK_THAT(to_html(report), Catch::Contains("floor: words"));
}

TEST_CASE("what the words of a task tell is a line of every form, computed once and kept with what it is of") {
  const JudgedStudy study(", seeds: 1");
  study.write_words();
  study.run();
  const auto report = study.report();
  const auto rows = verdict_table(report).rows;
  REQUIRE(rows.size() == 4);
  CHECK((rows[2][0] == "majority" && rows[2][2].starts_with("75.0") && rows[2].back() == "floor"));
  CHECK((rows[3][0] == "words" && rows[3][2].starts_with("75.0") && rows[3].back() == "floor"));
  CHECK(paper_table(report).rows[3][0] == "words");
  CHECK_THAT(value_chart(report), Catch::Contains("majority") && Catch::Contains("words"));
  CHECK_THAT(to_csv(report), Catch::Contains("\nfloor,") && Catch::Contains(",words\n"));
  CHECK(to_json(report)["floors"] == nlohmann::json::parse(R"([{"name": "majority", "value": 75.0},
                                                               {"name": "words", "value": 75.0}])"));
  REQUIRE(report.secondary_floors.size() == 1);  // dogs
  CHECK(report.secondary_floors[0].at(0).value == 75);
  CHECK(secondary_tables(report).at(0).rows.back()[0] == "words");
  const auto is_secondary = [](const Table& table) { return table.title.starts_with("Secondary: dogs"); };
  CHECK(std::ranges::find_if(report.tables, is_secondary)->rows.back()[0] == "words");

  const auto path = study.folder / "out/tasks/floors.json";
  auto kept = nlohmann::json::parse(read_file(path));
  REQUIRE(kept["floors"].size() == 2);  // of cats and of dogs
  for (auto& [key, value] : kept["floors"].items()) {
    CHECK_THAT(key, Catch::Contains(" accuracy "));
    value = 60;
  }
  const auto words_of = [&] { return study.report().other_floors.at(0).value; };
  study.folder.write("out/tasks/floors.json", kept.dump());
  CHECK(words_of() == 75);  // edited, and so computed again
  kept["xxh3"] = hash_hex(kept["floors"].dump());
  study.folder.write("out/tasks/floors.json", kept.dump());
  CHECK(words_of() == 60);
  for (const std::string damaged : {"", "[]", "{\"floors\": 1"}) {
    study.folder.write("out/tasks/floors.json", damaged);
    CHECK(words_of() == 75);
  }
}

TEST_CASE("a report of fine-tuned runs by hand has what words tell, where the training parts of all tell the same") {
  const JudgedStudy study(", seeds: 1, set: {train.budget.steps: 7}");
  study.write_words();
  study.run();
  RunsQuestion question;
  question.metric = "accuracy";
  for (const std::string run : {"a/seed-1", "a/seed-2", "b/seed-1"})
    question.folders.push_back(study.folder / ("out/tasks/runs/" + run + "/cats/seed-1"));
  const auto floors = [&] { return report_of_runs(question).other_floors; };
  REQUIRE(floors().size() == 1);
  CHECK((floors()[0].name == "words" && floors()[0].value == 75));
  const auto& last = question.folders.back();
  const auto prepare_again = [&](const std::string& train) {
    study.folder.write("train.tsv", train);
    const auto tokenizer = Tokenizer::open(last + "/vocab");
    prepare_task(open_task(study.folder / "cats.yaml"), tokenizer, special_token_template(tokenizer),
                 last + "/" + task_folder);
  };
  prepare_again(read_file(study.folder / "train.tsv") + "the cat sleeps\tno\n");
  CHECK(floors().size() == 1);  // of other rows
  prepare_again("text\tlabel\nthe dog sleeps\tno\nthe cat barks\tyes\nthe dog sat\tno\n");
  CHECK(floors().empty());
}

TEST_CASE("a plan of a search says its tries and its costs") {
  const JudgedStudy study(searched);
  const auto stages = study.stages();
  const std::vector<FinetuningCost> costs{{.arm = "a", .task = "cats", .flops = 1e9, .seconds = 60},
                                          {.arm = "b", .task = "cats", .flops = 1e9, .seconds = 60},
                                          {.arm = "a", .task = "dogs", .flops = 1e9, .seconds = 60},
                                          {.arm = "b", .task = "dogs", .flops = 1e9, .seconds = 60}};
  const auto search = task_tuning_text(stages.plans[1], costs, 2, 80);
  CHECK_THAT(search, Catch::Contains("search of optimizer.learning_rate for the fine-tunings of 4 runs on cats, dogs,\n"
                                     "  each with 3 combinations and 1 seed = 24 runs in"));
  CHECK_THAT(search, Catch::Contains("in all    24 GFLOPs, about 12m00s with 2 runs at once"));
  CHECK_THAT(search, Catch::Contains("budget    6 tries for each arm on each task"));
  const auto tasks = task_plan_text(stages.plans[2], costs, 2, 100);
  CHECK_THAT(tasks, Catch::Contains("in all    16 GFLOPs, about 8m00s with 2 runs at once"));
  CHECK_THAT(tasks,
             Catch::Contains("recipe    the same rates, batches and passes for all arms, but for what the search "
                             "finds of\n          optimizer.learning_rate; one fine-tuning has\n\ntask "));
}

TEST_CASE("a search for fine-tunings that cannot be is refused before any run") {
  const auto with = [](const std::string& of_tasks) { return JudgedStudy(of_tasks).error(); };
  CHECK_THAT(with(", tune: {optimizer.learning_rate: [1e-3]}"),
             Catch::Contains("tasks.tune 'optimizer.learning_rate' is [1e-3], must be a list of at least two values"));
  CHECK_THAT(with(", tune: {optimizer.learning_rat: [1e-3, 1e-4]}"), Catch::Contains("learning_rat"));
  CHECK_THAT(with(", tune: {task.max_length: [32, 64]}"),
             Catch::Contains("tasks.tune 'task.max_length' is a key of the task, whose figures would be others"));
  CHECK_THAT(with(", tune: {train.seed: [1, 2]}"), Catch::Contains("'train.seed' would be replaced"));
  CHECK_THAT(with(", tuning_seeds: 2"), Catch::Contains("no key of the fine-tunings is tuned"));
  CHECK_THAT(with(", set: {train: {seed: 3}}"), Catch::Contains("'train.seed' would be replaced"));
}
