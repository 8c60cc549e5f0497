// Plans, runs and reports of studies whose runs are made up by tests/study/program/fake_cloze.cpp.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "study/report.h"
#include "study/runner.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

const char* base_yaml = R"(
model: {kind: bert, hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 64}
objectives: [{kind: mlm}]
train: {batch_size: 4, budget: {steps: 100}}
data: {max_seq_length: 32}
)";

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
    folder.write("base.yaml", base_yaml);
    folder.write("study.yaml", yaml);
  }
  Plan plan() const { return make_plan(folder / "study.yaml", folder / "out"); }
  StudyProgress run(std::vector<std::string> only = {}, StaleRuns stale = StaleRuns::refuse) const {
    return run_study(plan(), {.program = BINARY_DIR "/fake_cloze", .jobs = 2, .only = only, .stale = stale});
  }
  std::string error() const {
    try {
      plan();
    } catch (const ConfigError& e) {
      return e.what();
    }
    return "";
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
  CHECK_THAT(with_arms("  a: {}\n  b: {objectives.0.unt: word}\n").error(),
             Catch::Contains("study.yaml:5:7") && Catch::Contains("did you mean 'unit'?"));
  CHECK_THAT(with_arms("  a: {}\n  b: {train.seed: 7}\n  c: {train.seed: 8}\n").error(),
             Catch::Contains("arms 'a' and 'b' have equal configs"));
  CHECK_THAT(with_arms("  a: {}\n  b: {from: aa}\n").error(), Catch::Contains("starts from 'aa', which is no arm"));
  CHECK_THAT(with_arms("  a: {from: b}\n  b: {from: a}\n").error(), Catch::Contains("starts from itself"));
  CHECK_THAT(with_arms("  a: {}\n").error(), Catch::Contains("needs at least two arms"));
  CHECK_THAT(with_arms("  a: {}\n  b: {train.batch_size: 8}\n", "baseline: bb\n").error(),
             Catch::Contains("baseline 'bb' is no arm; did you mean"));
  CHECK_THAT(with_arms("  a: {}\n  b: {train.batch_size: 8}\n", "sed: 3\n").error(),
             Catch::Contains("unknown key 'sed'"));
  CHECK_THAT(with_arms("  a: {}\n  b: {model.num_attention_heads: 3}\n").error(), Catch::Contains("arm 'b': "));
  CHECK_THAT(with_arms("  a: {}\n  b: {train.batch_size: 8}\n", "metric: {objective: clm}\n").error(),
             Catch::Contains("clm"));
}

TEST_CASE("a study runs every run once, and the report names what is better, equal and worse") {
  const Study study;
  const auto first = study.run();
  CHECK(first.done == 15);
  study.run();
  CHECK(read_file(study.folder / "out/runs/low/seed-1/starts") == "started\n");
  const auto report = make_report(study.plan());
  CHECK(report.arms[1].verdict == "worse by 0.100 to 0.100 nats");
  CHECK(report.arms[2].verdict.starts_with("tied within 0.01 nats"));
  CHECK(report.arms[1].difference.bootstrap_interval->low > 0.09);
  REQUIRE(report.arms[1].curve.mean.size() == 10);
  const auto json = to_json(report);
  CHECK(json["arms"][0]["runs"].size() == 5);
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
  const auto report = make_report(study.plan());
  CHECK(report.arms[1].verdict == "no finished pair of runs");
  CHECK_THAT(report.notes.front(), Catch::Contains("the loss is not finite at step 3"));
}

TEST_CASE("a run that was killed is resumed by the next start") {
  const auto study = with_arms("  a: {optimizer.learning_rate: 0.1}\n  b: {optimizer.learning_rate: 0.25}\n");
  CHECK(study.run().failed == 2);
  CHECK(study.run().done == 4);
  CHECK(read_file(study.folder / "out/runs/b/seed-1/starts") == "started\nresumed\n");
}

TEST_CASE("two processes share the runs of a study, and none is done twice") {
  const auto study = with_arms("  a: {optimizer.learning_rate: 0.125}\n  b: {optimizer.learning_rate: 0.1}\n");
  const pid_t other = fork();
  if (other == 0) {
    study.run();
    _exit(0);
  }
  study.run();
  int status = 0;
  waitpid(other, &status, 0);
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
}

TEST_CASE("held-out losses that were edited are refused with the file") {
  const Study study;
  study.run({"low", "high"});
  const auto path = study.folder / "out/runs/high/seed-2/held_out.json";
  auto text = read_file(path);
  const auto digit = text.find("\"sum\":[") + 7;
  text[digit] = text[digit] == '9' ? '8' : '9';
  study.folder.write("out/runs/high/seed-2/held_out.json", text);
  CHECK_THROWS_WITH(make_report(study.plan()), Catch::Contains(path) && Catch::Contains("edited"));
}
