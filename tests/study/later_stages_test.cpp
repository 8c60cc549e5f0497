// Stages of training after the first: `then`.
#include <filesystem>

#include "study/execution/process.h"
#include "study/costs/costs.h"
#include "tests/study/made_up_study.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

const std::string two_stages = two_arms +
                               "seeds: 2\nbudget: {steps: 100}\n"
                               "then: [{budget: {steps: 20}, set: {data.max_seq_length: 64}, "
                               "arms: {b: {optimizer.learning_rate: 0.01}}}]\n";

}  // namespace

TEST_CASE("a later stage starts from the network of its arm and seed, and is what the report compares") {
  const Study study(two_stages);
  const auto stages = study.stages();
  REQUIRE(stages.plans.size() == 2);
  CHECK(stages.comparison == 1);
  for (const auto& run : stages.plans[0].runs) CHECK(run.config.data.max_seq_length == 32);
  for (const auto& run : stages.compared().runs) {
    CHECK(run.config.train.budget.steps == 20);
    CHECK(run.config.data.max_seq_length == 64);
    CHECK(run.config.evaluation.max_seq_length == 64);
    CHECK(run.config.train.seed == run.seed);
    CHECK(run.config.init.from == study.folder / concat("out/runs/", run.arm, "/seed-", run.seed));
    CHECK(run.config.optimizer.learning_rate == (run.arm == "b" ? 0.01 : 1e-4));
    CHECK(run.config.train.batch_size == (run.arm == "b" ? 8 : 4));  // of the first stage
  }
  CHECK(study.run({"a/1"}).done == 2);
  CHECK(study.run().done == 8);
  const auto report = study.report();
  REQUIRE(report.runs.size() == 4);
  for (const auto& run : report.runs) {
    CHECK(run.result.step == 120);
    CHECK(run.result.tokens == 12'000);  // of both stages
    CHECK(run.budget == "100 steps, then 20 steps");
  }
}

TEST_CASE("a later stage begins with the last step of the one before, and so do heads and fine-tunings of a study") {
  const Study study(two_stages);
  study.run();
  const auto run = study.folder / "out/runs/a/seed-1";
  CHECK(read_file(run + "/best") == "step-00000099\n");
  CHECK(config_of(study, "/stage-2/runs/a/seed-1").init.from == run + "/step-00000100");
  CHECK(contains(study.report().notes, "no learning rate was tuned: a ran with 1e-04; b ran with 1e-04, then 0.01"));

  const Study probed(two_arms + "seeds: 2\nbudget: {steps: 100}\nprobe_head: {share: 0.05}\n");
  probed.run();
  CHECK(config_of(probed, "/probe/runs/a/seed-1").init.from == probed.folder / "out/runs/a/seed-1/step-00000095");
}

TEST_CASE("a run of a study that began with other weights than its source has now, or has others itself, is stale") {
  const Study study(two_stages);
  study.run();
  const auto source = "out/runs/a/seed-1/step-00000100/manifest.json";
  const auto own = "out/stage-2/runs/b/seed-2/step-00000020/manifest.json";
  for (const auto* changed : {source, own})
    study.folder.write(changed, R"({"files": {"weights.safetensors": {"xxh3": "of another run"}}})");
  const auto notes = notes_of(study.report());
  CHECK_THAT(notes, Catch::Contains("run a/1 was made from another config, text, tokenizer or version, or from other "
                                    "weights: " +
                                    (study.folder / "out/runs/a/seed-1/step-00000100") +
                                    " has other "
                                    "weights than those that it began with; it is not in the table") &&
                        Catch::Contains("run b/2 was made") && Catch::Contains("than those that it ended with"));
  CHECK_THAT(error_of([&] { study.run(); }), Catch::Contains("or from other weights: a/1; make them again"));
  CHECK(study.run({}, StaleRuns::keep).done == 8);
  CHECK_THAT(notes_of(study.report()), Catch::Contains("and kept as it is") && !Catch::Contains("not in the table"));
}

TEST_CASE("a later stage of a study that was moved goes on by the path from which it was initialized") {
  const Study study(two_stages);
  study.run();
  const std::string run = "/stage-2/runs/a/seed-1", moved = study.folder / "moved";
  const auto from = config_of(study, run).init.from;
  std::filesystem::rename(study.folder / "out", moved);
  std::filesystem::remove(moved + run + "/held_out.json");
  run_stages(study.folder / "study.yaml", moved, {.program = BINARY_DIR "/fake_cloze", .jobs = 1, .only = {}});
  CHECK(read_file(moved + run + "/starts") == "started\nresumed\n");
  CHECK(decode<RunConfig>(ConfigTree::load(moved + run + ".yaml")).init.from == from);
}

TEST_CASE(
    "a later stage that was killed before its first checkpoint, and moved, begins anew from where its source is") {
  const Study study(two_stages);
  study.run();
  const std::string run = "/stage-2/runs/a/seed-1", moved = study.folder / "moved";
  std::filesystem::rename(study.folder / "out", moved);
  const auto config = read_file(moved + run + "/run.yaml");
  std::filesystem::remove_all(moved + run);
  study.folder.write("moved" + run + "/run.yaml", config);
  study.folder.write("moved" + run + "/provenance.json", "{}");
  run_stages(study.folder / "study.yaml", moved, {.program = BINARY_DIR "/fake_cloze", .jobs = 1, .only = {}});
  CHECK(read_file(moved + run + "/starts") == "started\n");
  CHECK(decode<RunConfig>(ConfigTree::load(moved + run + ".yaml")).init.from == moved + "/runs/a/seed-1/step-00000100");
}

TEST_CASE("a damaged run.yaml in a later stage is left to the run that it is of, and ends no other") {
  const Study study(two_stages);
  study.run();
  const std::string run = "stage-2/runs/a/seed-1";
  const auto from = config_of(study, "/" + run).init.from;
  study.folder.write("out/" + run + "/run.yaml", "model: [");
  std::filesystem::remove(study.folder / ("out/" + run + "/held_out.json"));
  CHECK(study.run().done == 8);  // as the made-up program reads no run.yaml
  CHECK(study.starts(run) == "started\nresumed\n");
  CHECK(config_of(study, "/" + run).init.from == from);
}

TEST_CASE("arms of a later stage do not differ in the networks that they start from, which are their own") {
  const auto plan = Study(two_stages).stages().compared();
  std::string keys;
  for (const auto& one : differing_keys(plan)) keys += one.key + " ";
  CHECK(keys == "optimizer.learning_rate train.batch_size ");
}

TEST_CASE("a study of stages is decided by a suite, which the runs of the last stage alone answer") {
  const Study study(two_arms +
                    "seeds: 2\nbudget: {steps: 100}\nthen: [{budget: {steps: 20}}]\nmetric: {suite: pairs}\n");
  const auto first = study.stages().plans[0];
  CHECK(first.runs[0].config.evaluation.suites.empty());
  check_metrics(first, std::vector<Probe>(2));  // has none that its suites could lack
  CHECK(study.run().done == 8);
  CHECK(study.run().done == 8);
  CHECK(study.starts("runs/a/seed-1") == "started\n");
  const auto report = study.report();
  CHECK(report.metric == "pairs accuracy");
  CHECK(report.arms[1].runs.size() == 2);
}

TEST_CASE("a later stage is scored on rows of the length that it says, else of one that all arms read") {
  const Study study(two_arms +
                    "seeds: 2\nthen: [{budget: {steps: 20}, set: {data.max_seq_length: 64, "
                    "evaluation.max_seq_length: 16}}]\n");
  for (const auto& run : study.stages().compared().runs) CHECK(run.config.evaluation.max_seq_length == 16);
}

TEST_CASE("what is changed in the first stage makes the later one stale, too") {
  const Study study(two_stages);
  study.run();
  auto other = two_stages;
  other.replace(other.find("steps: 100"), 10, "steps: 110");
  study.write(other);
  const auto stages = study.stages();
  for (const auto& plan : stages.plans)
    for (const auto& run : plan.runs) CHECK(status_of(plan, run).state == RunState::stale);
}

TEST_CASE("FLOPs are counted as the study says in every stage and part of its budget") {
  const std::string published = two_arms + "seeds: 2\nbudget: {flops: 1e9, count: published}\n";
  const auto counts = [](const std::string& yaml) {
    std::string found;
    for (const auto& plan : Study(yaml).stages().plans)
      found += concat(plan.runs.front().config.train.budget.count, " ");
    return found;
  };
  CHECK(counts(published + "then: [{budget: {flops: 1e9}}]\n") == "published published ");
  CHECK(counts(published + "probe_head: {share: 0.05}\n") == "published published ");
  CHECK(counts(published + "tune: {optimizer.learning_rate: [0.1, 0.2]}\ntuning: {budget: {flops: 1e8}}\n") ==
        "published published ");
}

TEST_CASE("the failure of a run is the last sentence of its log, with the lines that belong to it") {
  CHECK(last_sentence("step 1\ncloze: error: no such file\n") == "no such file");
  CHECK(last_sentence("step 1\ncloze: error: differs:\n  a: 1 -> 2\n  b: 2 -> 3\n\n") ==
        "differs: a: 1 -> 2; b: 2 -> 3");
  CHECK(last_sentence("") == "ended without a word");
}
