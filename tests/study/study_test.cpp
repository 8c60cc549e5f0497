// Plans, runs and reports of studies whose runs are made up by tests/study/program/fake_cloze.cpp.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/contains.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/lock.h"
#include "core/log.h"
#include "models/transformer_config.h"
#include "run/config/load_config.h"
#include "study/execution/process.h"
#include "study/execution/runner.h"
#include "study/execution/runs.h"
#include "study/costs/costs.h"
#include "study/report/report.h"
#include "study/search/stages.h"
#include "tests/study/study_files.h"
#include "tests/support/catch.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

/// A study file of three arms: the second is worse by 0.1, the third equals the baseline to 0.0001.
const char* study_yaml = R"(study: rates
base: base.yaml
set: {train.budget.steps: 10}
baseline: low
arms:
  low: {optimizer.learning_rate: 0.1}
  high: {optimizer.learning_rate: 0.2}
  same: {optimizer.learning_rate: 0.1001}
seeds: 5
metric: {objective: mlm, better_by: 0.01}
)";

struct Study {
  explicit Study(const std::string& yaml = study_yaml) {
    set_log_level(LogLevel::quiet);
    folder.write("base.yaml", small_run_yaml);
    folder.write("study.yaml", yaml);
  }
  Plan plan() const { return make_stages(folder / "study.yaml", folder / "out").compared(); }
  StudyReport report() const { return make_report(make_stages(folder / "study.yaml", folder / "out")); }
  StudyProgress run(std::vector<std::string> only = {}, StaleRuns stale = StaleRuns::refuse) const {
    return run_study(plan(), {.program = BINARY_DIR "/fake_cloze", .jobs = 2, .only = only, .stale = stale});
  }
  std::string error() const {
    return error_of([&] { plan(); });
  }
  TempDir folder;
};

Study with_arms(const std::string& arms, const std::string& rest = "") {
  return Study("study: s\nbase: base.yaml\narms:\n" + arms + "seeds: 2\n" + rest);
}

}  // namespace

TEST_CASE("a study is planned as arms times seeds, each run a config of its own with the same evaluation") {
  const Study study;
  const auto plan = study.plan();
  REQUIRE(plan.arms.size() == 3);
  CHECK(plan.arms.front().name == "low");
  REQUIRE(plan.runs.size() == 15);
  CHECK(plan.runs[0].config.train.seed == 1);
  CHECK(plan.runs[14].config.train.seed == 5);
  for (const auto& run : plan.runs) {
    CHECK(run.config.train.budget.steps == 10);
    CHECK(run.config.evaluation.seed == 1);
    CHECK(run.config.evaluation.objectives.size() == 1);
  }
}

TEST_CASE("an arm starts from another, and a sweep multiplies arms by its values") {
  const auto study =
      with_arms("  small: {model.hidden_size: 64}\n  hot: {from: small, optimizer.learning_rate: 0.01}\n",
                "sweep: {train.batch_size: [2, 4]}\n");
  const auto plan = study.plan();
  REQUIRE(plan.arms.size() == 4);
  CHECK(plan.arms[3].name == "hot, batch_size=4");
  const auto& last = plan.runs[3].config;
  CHECK(backbone_of(last.model).hidden_size == 64);
  CHECK(last.optimizer.learning_rate == 0.01);
  CHECK(last.train.batch_size == 4);
}

TEST_CASE("mistakes of a study are answered with their line before any run") {
  const auto shared = with_arms("  a: {}\n  b: {train.batch_size: 8}\nsecondary: [{objective: nsp}]\n").error();
  CHECK_THAT(shared, Catch::StartsWith("arms 'a', 'b': evaluation.objectives: the network has no head for nsp, only") &&
                         Catch::EndsWith("or train it with nsp too (`secondary.0` of the study)"));
}

TEST_CASE("a study file may use anchors, and one that would grow without bound is refused") {
  const auto anchored = with_arms("  a: &small {model.hidden_size: 64}\n  b: {<<: *small}\n");
  CHECK_THAT(anchored.error(),
             Catch::Contains("study.yaml:5:7: arm 'b' merges keys by '<<'") && Catch::Contains("`from: ARM`"));
  const auto plan =
      with_arms("  a: {optimizer.learning_rate: &rate 0.1}\n  b: {optimizer.weight_decay: *rate}\n").plan();
  CHECK(plan.runs[1].config.optimizer.weight_decay == 0.1);
  std::string bomb = "x0: &x0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 9; ++i) {
    const auto before = "*x" + std::to_string(i - 1) + " , ";
    bomb += concat("x", i, ": &x", i, " [");
    for (int k = 0; k < 10; ++k) bomb += before;
    bomb += "1]\n";
  }
  CHECK_THAT(with_arms("  a: {}\n  b: {train.batch_size: 8}\n", bomb).error(),
             Catch::Contains("study.yaml: more than 100000 values once aliases are followed"));
}

TEST_CASE("a key that the study itself sets is refused with the place to set it, and never dropped") {
  const auto refused = [](const std::string& yaml) {
    return Study("study: s\nbase: base.yaml\nseeds: 2\nbudget: {steps: 10}\n" + yaml).error();
  };
  const std::string arms = "arms: {a: {}, b: {optimizer.learning_rate: 0.1}}\n";
  CHECK_THAT(
      refused(arms + "set: {train.seed: 3}\n"),
      Catch::Contains("'train.seed' would be replaced by what the study says; name the seeds of all runs under"));
  CHECK_THAT(
      refused(arms + "set: {evaluation: {sequences: 5}}\n"),
      Catch::Contains("'evaluation.sequences' would be replaced") && Catch::Contains("metric: {sequences: ...}"));
  for (const std::string key : {"objectives: [mlm]", "seed: 2", "points: 3", "every: 5", "patience: 2"})
    CHECK_THAT(refused(arms + "set: {evaluation." + key + "}\n"), Catch::Contains("would be replaced"));
  CHECK_THAT(refused("arms: {a: {}, b: {train.budget.steps: 20}}\n"),
             Catch::Contains("study.yaml:5:") && Catch::Contains("give every run its budget under `budget:`"));
  CHECK(refused(arms + "set: {checkpoint.keep: 3, evaluation.max_seq_length: 8, evaluation.suite_every: 5}\n") == "");
}

TEST_CASE("checkpoints are kept as a study says, and one otherwise") {
  const std::string arms =
      "study: s\nbase: base.yaml\nseeds: 2\nbudget: {steps: 10}\narms: {a: {}, b: {optimizer.learning_rate: 0.1}}\n";
  CHECK(Study(arms).plan().runs[0].config.checkpoint.keep == 1);
  CHECK(Study(arms + "set: {checkpoint: {keep: 3}}\n").plan().runs[0].config.checkpoint.keep == 3);
}

TEST_CASE("a study runs every run once, and the report names what is better, equal and worse") {
  const Study study;
  const auto first = study.run();
  CHECK(first.done == 15);
  study.run();
  CHECK(read_file(study.folder / "out/runs/low/seed-1/starts") == "started\n");
  const auto report = study.report();
  CHECK(report.arms[1].verdict == "worse by 0.100 to 0.100 nats (simultaneous over 2 comparisons)");
  CHECK(report.arms[2].verdict.starts_with("tied within 0.01 nats"));
  CHECK(report.arms[1].difference.interval->low > 0.09);
  REQUIRE(report.arms[1].curve.mean.size() == 10);
  const auto json = to_json(report);
  CHECK(json["arms"][0]["runs"].size() == 5);
  CHECK(!json["arms"][0].contains("difference"));  // the baseline
  CHECK(json["arms"][1]["difference"]["p_holm"].get<double>() < 1e-6);
  CHECK_THAT(to_markdown(report), Catch::Contains("| high | 5 |"));
  CHECK_THAT(to_latex(report), Catch::Contains("\\toprule"));
  CHECK_THAT(to_csv(report), Catch::Contains("run,high,3,"));
  for (const int64_t columns : {60, 80, 140}) CHECK_THAT(to_text(report, columns), Catch::Contains("worse by"));
}

TEST_CASE("a failed run is named with its reason, the others go on, and it is tried again") {
  const auto study = with_arms("  a: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.5}\n");
  const auto progress = study.run();
  CHECK(progress.done == 2);
  CHECK(progress.failed == 2);
  CHECK(error_of([&] { require_none_failed(progress); }) ==
        "2 of 4 runs have failed, the first of them b/1: the loss is not finite at step 3; mend that, and the same "
        "command goes on");
  require_none_failed({.done = 2});
  const auto report = study.report();
  CHECK(report.arms[1].verdict == "no finished pair of runs");
  const auto json = to_json(report);
  CHECK(json["arms"][1]["mean"].is_null());
  CHECK(json["arms"][1]["difference"]["mean"].is_null());
  CHECK(json["arms"][1]["difference"]["verdict"] == "no finished pair of runs");
  CHECK_THAT(report.notes.front(), Catch::Contains("the loss is not finite at step 3"));
}

TEST_CASE("a run that was killed is resumed by the next start") {
  const auto study = with_arms("  a: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.25}\n");
  CHECK(study.run().failed == 2);
  CHECK(study.run().done == 4);
  CHECK(read_file(study.folder / "out/runs/b/seed-1/starts") == "started\nresumed\n");
}

TEST_CASE("a run that was killed is taken up before those that never began") {
  const Study study;
  const auto plan = study.plan();
  const auto& last = plan.runs.back();
  study.folder.write(concat("out/runs/", last.arm, "/seed-", last.seed, "/run.yaml"), to_yaml(last.config));
  run_study(plan, {.program = BINARY_DIR "/fake_cloze", .jobs = 1, .only = {"low", "same"}});
  const auto ended = [&](const PlannedRun& run) {
    return std::filesystem::last_write_time(run.folder + "/held_out.json");
  };
  for (const auto& run : plan.runs)
    if (run.arm != "high" && run.folder != last.folder) CHECK(ended(last) < ended(run));
}

TEST_CASE("what killed processes left half written in a study is swept by the next start") {
  const auto study = with_arms("  a: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.2}\n");
  const std::vector<std::string> files{"declaration.json", "probes.json", "runs/a/seed-1.json", "runs/b/seed-2.yaml"};
  for (const auto& file : files) study.folder.write("out/" + file + ".tmp-4194000", "{");
  study.folder.write("out/notes.tmp-2024", "of the user");
  CHECK(study.run().done == 4);
  for (const auto& file : files) CHECK_FALSE(std::filesystem::exists(study.folder / ("out/" + file + ".tmp-4194000")));
  CHECK(std::filesystem::exists(study.folder / "out/notes.tmp-2024"));
}

TEST_CASE("a study writes through no link in its folder, and what is elsewhere stays as it is") {
  namespace fs = std::filesystem;
  const auto study = with_arms("  a: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.2}\n");
  const auto elsewhere = study.folder / "elsewhere";
  study.folder.write("elsewhere/seed-1.yaml", "of the user");
  study.folder.write("elsewhere/notes.json.tmp-4194000", "of the user");
  for (const std::string name : {"out/runs", "out/runs/b", "out/runs/b/seed-1"}) {
    const auto link = study.folder / name;
    fs::create_directories(fs::path(link).parent_path());
    fs::create_symlink(elsewhere, link);
    CHECK_THROWS_WITH(study.run(), Catch::StartsWith(link + ": is a link, through which another folder"));
    fs::remove_all(study.folder / "out");
  }
  CHECK(std::distance(fs::directory_iterator(elsewhere), fs::directory_iterator{}) == 2);
  CHECK(read_file(elsewhere + "/seed-1.yaml") == "of the user");
  CHECK(study.run().done == 4);
}

TEST_CASE("a run that its process leaves unfinished while others run is taken up at the end") {
  const Study study;
  const auto plan = study.plan();
  const auto path = claim_path(plan.runs[0]);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  auto claim = Lock::take(path);
  REQUIRE(claim);
  std::thread owner([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    claim.reset();
  });
  const auto progress = study.run();
  owner.join();
  CHECK(progress.done == 15);
  CHECK(progress.waiting == 0);
}

TEST_CASE("two processes share the runs of a study, and none is done twice") {
  const auto study = with_arms("  a: {optimizer.learning_rate: 0.125}\n  b: {optimizer.learning_rate: 0.1}\n");
  const pid_t other = start_child([&] { study.run(); });
  study.run();
  CHECK(wait_for(other) == 0);
  for (const std::string run : {"a/seed-1", "a/seed-2", "b/seed-1", "b/seed-2"})
    CHECK(read_file(study.folder / ("out/runs/" + run + "/starts")) == "started\n");
}

TEST_CASE("runs of a study that has changed are refused, kept or made again as asked") {
  const Study study;
  study.run({"low/1", "high"});
  auto yaml = std::string(study_yaml);
  yaml.replace(yaml.find("high: {optimizer.learning_rate: 0.2}"), 36, "high: {optimizer.learning_rate: 0.3}");
  study.folder.write("study.yaml", yaml);
  CHECK_THROWS_WITH(study.run(), Catch::Contains("high/1, high/2") && Catch::Contains("--redo"));
  study.run({"high/1"}, StaleRuns::redo);
  CHECK(read_file(study.folder / "out/runs/high/seed-1/starts") == "started\n");
  CHECK(status_of(study.plan(), study.plan().runs[1]).state == RunState::done);
  CHECK_THROWS_WITH(study.run({"hgh"}), Catch::Contains("did you mean 'high'?"));
  CHECK(study.run({"high/2"}, StaleRuns::keep).done == 1);
  CHECK(study.run({"high/2"}).done == 1);
  CHECK(read_file(study.folder / "out/runs/high/seed-2/starts") == "started\n");
  const auto notes = study.report().notes;
  const auto kept = std::count_if(notes.begin(), notes.end(),
                                  [](const auto& note) { return note.find("kept as it is") != std::string::npos; });
  CHECK(kept == 1);
  CHECK_THAT(notes.front(), Catch::Contains("run high/2 was made from another config"));
}

TEST_CASE("a run without a result cannot be kept when the study has changed") {
  const auto study = with_arms("  a: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.5}\n");
  study.run();
  study.folder.write("base.yaml", std::string(small_run_yaml) + "optimizer: {weight_decay: 0.02}\n");
  CHECK_THROWS_WITH(study.run({}, StaleRuns::keep), Catch::Contains("no result that --keep could leave: b/1, b/2") &&
                                                        Catch::Contains("--redo and --only"));
  CHECK_THROWS_WITH(study.run(), Catch::Contains("a/1, b/1, a/2, b/2"));  // nothing was kept
}

TEST_CASE("held-out losses that were edited are refused with the file") {
  const Study study;
  study.run({"low", "high"});
  const auto path = study.folder / "out/runs/high/seed-2/held_out.json";
  auto text = read_file(path);
  const auto digit = text.find("\"sum\":[") + 7;
  text[digit] = text[digit] == '9' ? '8' : '9';
  study.folder.write("out/runs/high/seed-2/held_out.json", text);
  CHECK_THROWS_WITH(study.report(), Catch::Contains(path) && Catch::Contains("edited"));
}

TEST_CASE("what stands where a study puts a run is never removed, and the run is trained when it is moved away") {
  const auto study = with_arms("  a: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.2}\n");
  const auto folder = study.folder / "out/runs/a/seed-1";
  const auto refused = [&](StaleRuns stale) {
    CHECK_THROWS_WITH(study.run({}, stale), Catch::StartsWith(folder + ": stands where the study puts a run") &&
                                                Catch::EndsWith("move the folder away, and the run is trained anew"));
  };
  study.folder.write("out/runs/a/seed-1/step-00000100/weights.safetensors", "of weeks");
  study.folder.write("out/runs/b/seed-1/provenance.json", "{}");  // killed in its first moment
  refused(StaleRuns::refuse);
  CHECK(read_file(folder + "/step-00000100/weights.safetensors") == "of weeks");
  std::filesystem::rename(folder, study.folder / "aside");
  CHECK(study.run().done == 4);
  CHECK(read_file(study.folder / "aside/step-00000100/weights.safetensors") == "of weeks");
  // A run that lost its run.yaml is not made again over its checkpoints.
  study.folder.write("base.yaml", std::string(small_run_yaml) + "optimizer: {weight_decay: 0.02}\n");
  std::filesystem::remove(folder + "/run.yaml");
  refused(StaleRuns::redo);
  CHECK(read_file(folder + "/starts") == "started\n");
}

TEST_CASE(
    "a run whose held-out losses are lost or damaged is measured again by running the study, as the report says") {
  const auto study = with_arms("  a: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.2}\n");
  study.run();
  const auto report = to_json(study.report());
  const auto folder = study.folder / "out/runs/b/seed-2", file = folder + "/held_out.json";
  std::string starts = "started\n";
  const auto is_measured_again = [&](const std::string& fault) {
    INFO(fault);
    CHECK_THROWS_WITH(study.report(), Catch::StartsWith(file + fault) && Catch::Contains("run the study again"));
    const auto plan = study.plan();
    CHECK_THAT(status_of(plan, plan.runs[3]).message, Catch::StartsWith(file + fault));
    CHECK(study.run().done == 4);
    CHECK(read_file(folder + "/starts") == starts);
    CHECK(to_json(study.report()) == report);
  };
  std::filesystem::remove(file);
  starts += "resumed\n";
  is_measured_again(": is missing");
  for (const std::string damaged : {"", "{}", R"({"losses": {"mlm": {}}, "xxh3": "0"})"}) {
    study.folder.write("out/runs/b/seed-2/held_out.json", damaged);
    starts += "resumed\n";
    is_measured_again(": is damaged or was edited");
  }
  auto edited = read_file(file);
  edited.insert(edited.find("\"measured\":\"") + 12, "not ");
  study.folder.write("out/runs/b/seed-2/held_out.json", edited);
  starts += "resumed\n";
  is_measured_again(": is damaged or was edited");
  study.folder.write("out/runs/b/seed-2/held_out.json", read_file(study.folder / "out/runs/b/seed-1/held_out.json"));
  starts += "resumed\n";
  is_measured_again(": is of another run, with a loss of ");
  study.folder.write("out/runs/b/seed-2/summary.json", "{\"words\": 1");
  CHECK_THROWS_WITH(study.report(), Catch::StartsWith(folder + "/summary.json: is damaged; run the study again"));
  starts += "resumed\n";
  CHECK(study.run().done == 4);
  CHECK(read_file(folder + "/starts") == starts);
  CHECK(to_json(study.report()) == report);
  std::filesystem::remove_all(folder);
  starts = "started\n";
  is_measured_again(": is missing");
  // A run that was kept as it is would not be the same when it is measured with today's config.
  study.folder.write("base.yaml", std::string(small_run_yaml) + "optimizer: {weight_decay: 0.02}\n");
  CHECK(study.run({}, StaleRuns::keep).done == 4);
  std::filesystem::remove(file);
  CHECK_THROWS_WITH(study.report(), Catch::EndsWith("make the run again with --redo"));
  CHECK_THROWS_WITH(study.run({}, StaleRuns::keep), Catch::Contains("no result that --keep could leave: b/2;"));
  CHECK(study.run({}, StaleRuns::redo).done == 4);
  CHECK(read_file(folder + "/starts") == "started\n");
}

TEST_CASE("what was declared before the first run is compared with the study file of the report") {
  const Study study;
  study.run({"low/1"});
  CHECK(changes_since_declaration(study.plan()).empty());
  auto yaml = std::string(study_yaml);
  yaml.replace(yaml.find("better_by: 0.01"), 15, "better_by: 0.02");
  study.folder.write("study.yaml", yaml);
  const auto changes = changes_since_declaration(study.plan());
  REQUIRE(changes.size() == 1);
  CHECK(changes.front() == "metric.better_by was 0.01 before the first run, and is 0.02");
  const auto notes = study.report().notes;
  CHECK(contains(notes, "declared otherwise: " + changes.front()));
  auto file = read_file(study.folder / "out/declaration.json");
  file.replace(file.find("\"0.01\""), 6, "\"0.02\"");
  study.folder.write("out/declaration.json", file);
  CHECK_THROWS_WITH(changes_since_declaration(study.plan()),
                    Catch::Contains("declaration.json: is damaged or was edited"));
  auto other_kind = nlohmann::json::parse(file);
  other_kind["values"]["metric.better_by"] = 0.02;
  other_kind["declaration"] = hash_hex(json_text(other_kind["values"]));
  study.folder.write("out/declaration.json", json_text(other_kind));
  CHECK_THROWS_WITH(changes_since_declaration(study.plan()),
                    Catch::EndsWith("restore it, or remove it, and the report says that there is none"));
  std::filesystem::remove(study.folder / "out/declaration.json");
  study.run({"low/2"});  // what is declared now was not declared before the first run
  CHECK_FALSE(std::filesystem::exists(study.folder / "out/declaration.json"));
  CHECK(contains(study.report().notes,
                 "declaration.json is missing, so that nobody can tell what was declared before the first run"));
}

TEST_CASE("arms with different tokenizers are refused in nats and compared in bits per byte") {
  const std::string arms = "  a: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.0625}\n";
  const auto nats = with_arms(arms);
  nats.run();
  CHECK_THROWS_WITH(nats.report(), Catch::Contains("in bits per byte (metric.unit of a study"));
  const std::string unit = "metric: {objective: clm, unit: bits_per_byte}\n";
  const std::string generative =
      "set:\n  model: {kind: gpt2, hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2}\n"
      "  objectives: [{kind: clm}]\n";
  const auto by_bytes = with_arms(arms, generative + unit);
  by_bytes.run();
  const auto report = by_bytes.report();
  CHECK(report.unit == "bits per byte");
  // Every example of fake_cloze covers 40 bytes by 10 predictions.
  for (const auto& run : report.arms[0].runs) {
    double nats_of_run = 0;
    for (const double sum : run.examples.sum) nats_of_run += sum;
    CHECK(run.value == Approx(nats_of_run / std::log(2.0) / (40.0 * static_cast<double>(run.examples.sum.size()))));
  }
  CHECK(report.arms[1].difference.interval.has_value());
  // At a rate of 0.03125 fake_cloze scores more text.
  const auto other_text =
      with_arms("  a: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.03125}\n", generative + unit);
  other_text.run();
  CHECK_THROWS_WITH(other_text.report(), Catch::Contains("were scored on different text, of "));
}

TEST_CASE("commands name every run once, quoted for a shell, as lines and as an array job") {
  const auto study = with_arms("  it's: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.2}\n");
  const auto plan = study.plan();
  const std::vector<std::string> runs{"it's/1", "b/1", "it's/2", "b/2"};
  const auto lines = command_lines(plan, runs, "/opt/my tools/cloze");
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 4);
  CHECK_THAT(lines, Catch::Contains("'/opt/my tools/cloze' study run ") && Catch::Contains("--only 'it'\\''s/1'\n") &&
                        Catch::Contains("--only b/2\n"));
  const auto script = slurm_script(plan, {.runs = runs}, "cloze");
  CHECK_THAT(script, Catch::Contains("#SBATCH --array=0-3\n") && Catch::Contains("  'it'\\''s/1'\n") &&
                         Catch::Contains("--only \"${runs[$SLURM_ARRAY_TASK_ID]}\""));
  CHECK_THAT(slurm_script(plan, {.runs = runs}, "cloze", /*processes=*/4),
             Catch::Contains("#SBATCH --cpus-per-task=4\n") && Catch::Contains(" --jobs 1 --processes 4 --only "));
  CHECK_THAT(command_lines(plan, {"b/1"}, "cloze", /*processes=*/2), Catch::Contains(" --processes 2 --only b/1\n"));
  study.folder.write("job.sh", "cd() { :; }\nexec() { echo \"${@: -1}\"; }\nSLURM_ARRAY_TASK_ID=2\n" + script);
  CHECK(run_process({"bash", study.folder / "job.sh"}).text == "it's/2\n");
  auto named = study.plan();
  named.study.study = "x\ntouch canary\n#";  // a comment of the shell ends with its line
  CHECK_THAT(slurm_script(named, {.runs = runs}, "cloze"), Catch::Contains("#SBATCH --job-name='x touch canary #'\n"));
}

TEST_CASE("the script of several stages submits each as an array that begins when the one before has ended") {
  const auto study = with_arms("  a: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.2}\n");
  const std::vector<StageTasks> stages{{.stage = "tuning", .runs = {"it's/1", "b/1"}},
                                       {.stage = "rung 2", .processes = 3},
                                       {.stage = "runs", .runs = {"b/1"}}};
  study.folder.write("chain.sh", slurm_chain(study.plan(), stages, "cloze"));
  study.folder.write("bin/sbatch",
                     "#!/bin/bash\necho \"$@\" >> calls\ncat > job\ngrep -h array= job >> calls\n"
                     "sed -i 's/^exec/echo/; s/^cd .*//' job\nSLURM_ARRAY_TASK_ID=0 bash job >> calls\n"
                     "echo $(($(grep -c parsable calls) + 40))';cluster'\n");
  std::filesystem::permissions(study.folder / "bin/sbatch", std::filesystem::perms::all);
  const auto command = "cd " + study.folder.path.string() + " && PATH=bin:$PATH bash chain.sh --time=9";
  CHECK(run_process({"bash", "-c", command}).text == "the last of the jobs: 43\n");
  const auto plan = study.plan();
  const auto each = concat("cloze study run ", plan.file, " --out ", plan.root, " --jobs 1");
  CHECK(read_file(study.folder / "calls") ==
        concat("--parsable --time=9\n#SBATCH --array=0-1\n", each, " --only it's/1\n",
               "--parsable --dependency=afterany:41 --time=9\n#SBATCH --array=0-2\n", each, "\n",
               "--parsable --dependency=afterany:42 --time=9\n#SBATCH --array=0-0\n", each, " --only b/1\n"));
}

TEST_CASE("the cost of a run follows from its budget, in whatever currency, and from the steps of its probe") {
  RunConfig config;
  config.train.batch_size = 10;
  config.evaluation.points = 2, config.evaluation.sequences = 30;
  const Probe probe{.parameters = 100,
                    .checkpoint_bytes = 1200,
                    .seconds = 0.5,
                    .tokens = 1000,
                    .predicted_tokens = 150,
                    .flops = 1e9,
                    .sequences_per_epoch = 200,
                    .words_per_epoch = 14'000};
  const auto steps_of = [&](const BudgetConfig& budget) {
    config.train.budget = budget;
    return cost_of_run(config, probe).steps;
  };
  CHECK(steps_of({.steps = 7}) == 7);
  CHECK(steps_of({.tokens = 2500}) == 3);
  CHECK(steps_of({.predicted_tokens = 600}) == 4);
  CHECK(steps_of({.words = 7000}) == 10);
  CHECK(steps_of({.epochs = 1.5}) == 30);
  CHECK(steps_of({.flops = 5e9}) == 5);
  CHECK(steps_of({.minutes = 1}) == 120);
  CHECK(steps_of({.steps = 4, .tokens = 2500}) == 3);
  const auto cost = cost_of_run(config, probe);
  CHECK(cost.seconds == Approx(3 * 0.5 + 2 * 3 * 0.5 / 3));  // two evaluations of three batches, forward alone
}

TEST_CASE("budgets of one are in the singular") {
  CHECK(budget_words({.steps = 1, .epochs = 1}) == "1 step or 1 epoch");
  CHECK(budget_words({.tokens = 20'000'000, .epochs = 1.5, .minutes = 1}) ==
        "20,000,000 tokens or 1.5 epochs or 1 minute");
  CHECK(budget_words({.flops = 1e12, .count = FlopsCount::published}) == "1 TFLOPs (FLOPs as published)");
}

TEST_CASE("the base of a study may be a config by its name, which is looked for in configs/ as elsewhere") {
  const Study study("study: s\nbase: small/run\nseeds: 2\narms: {a: {}, b: {train.batch_size: 8}}\n");
  CHECK_THAT(study.error(), Catch::Contains("small/run"));  // it is not there yet
  std::filesystem::create_directories(study.folder / "configs/small");
  study.folder.write("configs/small/run.yaml", small_run_yaml);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(study.folder.path);
  const auto error = study.error();
  std::filesystem::current_path(before);
  CHECK(error.empty());
}

TEST_CASE("a plan says what its arms have in common and in which keys they differ") {
  const Study study;
  const auto plan = study.plan();
  const auto differing = differing_keys(plan);
  REQUIRE(differing.size() == 1);
  CHECK(differing.front().key == "optimizer.learning_rate");
  CHECK(differing.front().values == std::vector<std::string>{"0.1", "0.2", "0.1001"});
  std::vector<Probe> probes(
      3, Probe{.parameters = 1'000'000, .checkpoint_bytes = 12e6, .seconds = 1, .tokens = 100, .flops = 6e8});
  probes[2].flops = 9e8;
  for (const int64_t columns : {60, 80, 140}) {
    const auto text = plan_table(plan, probes, 2, columns);
    CHECK_THAT(text, Catch::Contains("3 arms x 5 seeds = 15 runs") && Catch::Contains("10 steps a run") &&
                         Catch::Contains("optimizer.learning_rate: 0.1, 0.2, 0.1001"));
    for (size_t at = 0, end; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      CHECK(end - at <= static_cast<size_t>(columns) + study.folder.path.string().size());
    }
  }
  const auto text = plan_table(plan, probes, 2, 80);
  CHECK_THAT(text, Catch::Contains("not equal FLOPs (6 G to 9 G)"));
  CHECK_THAT(text, Catch::Contains("\neach run  1 M parameters, 1 k tokens, 10 steps, ") &&
                       Catch::Contains("\narm             FLOPs\nlow (baseline)    6 G\n"));
  CHECK_THAT(plan_table(plan, {}, 2, 80), !Catch::Contains("FLOPs"));
}

TEST_CASE("a plan shows the values of a sweep once, and those of arms once for each arm that the study names") {
  const Study study(
      "study: s\nbase: base.yaml\narms:\n  small: {model.hidden_size: 32}\n  wide: {model.hidden_size: 64}\n"
      "sweep: {optimizer.beta1: [0.8, 0.9], optimizer.learning_rate: [0.1, 0.2, 0.3]}\nseeds: 2\n"
      "baseline: wide, beta1=0.9, learning_rate=0.2\n");
  const auto text = plan_table(study.plan(), {}, 2, 140);
  CHECK_THAT(text, Catch::Contains("model.hidden_size: 64, 32\n") && Catch::Contains("optimizer.beta1: 0.9, 0.8\n") &&
                       Catch::Contains("optimizer.learning_rate: 0.2, 0.1, 0.3\n"));
  const Study swept(
      "study: s\nbase: base.yaml\nsweep: {train.batch_size: [2, 8], optimizer.beta1: [0.8, 0.9]}\nseeds: 2\n");
  CHECK_THAT(plan_table(swept.plan(), {}, 2, 140),
             Catch::Contains("train.batch_size: 2, 8\n") && Catch::Contains("optimizer.beta1: 0.8, 0.9\n"));
}

TEST_CASE("a damaged manifest of the tokens is named when a study is planned") {
  const Study study;
  const auto tokens = study.folder / "tokens";
  std::string base = small_run_yaml;
  const std::string length = "max_seq_length: 32";
  base.replace(base.find(length), length.size(), length + ", tokens: " + tokens);
  study.folder.write("base.yaml", base);
  CHECK(study.error().empty());  // not prepared yet
  for (const auto* damaged : {"{}", R"({"fingerprint": 3})", "[]", "{"}) {
    study.folder.write("tokens/manifest.json", damaged);
    CHECK(study.error() == tokens + "/manifest.json: is damaged; prepare the text again");
  }
}

TEST_CASE("a run of a study that was changed by hand on its way is an arm of its own") {
  Study study;
  study.run();
  study.folder.write("out/runs/high/seed-2/provenance.json",
                     R"({"history": [{"step": 5, "changed": [{"key": "data.fingerprint", "was": "a", "is": "b"}]}]})");
  const auto report = study.report();
  REQUIRE(report.arms.size() == 4);
  CHECK(report.arms[1].runs.size() == 4);
  CHECK(report.arms[3].name == "high, changed at step 5");
  CHECK(report.arms[3].runs.size() == 1);
  CHECK(report.arms[3].differs.back() == "changed at step 5 with data.fingerprint b (was a)");
  const std::string note =
      "arm high, changed at step 5: with data.fingerprint b (was a); it is held apart from runs that never changed";
  CHECK(contains(report.notes, note));
}
