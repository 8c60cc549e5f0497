// Reports of runs that no study planned: run directories are written here.
#include "core/contains.h"
#include "run/config/load_config.h"
#include "study/report/report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "core/fingerprint.h"
#include "tests/study/study_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using nlohmann::json;

namespace {

struct Made {
  std::vector<std::string> set{};
  std::string measured = "mlm, 3 sequences of 32 tokens, packing document, seed 1, tokens abc";
  std::vector<std::string> losses{"mlm"};
  double value = 3;
  int64_t step = 100, logged = 100;
  std::string tokenizer = "t1", texts{};
  uint64_t bytes = 0;  ///< of each example; 0: not known
  bool finished = true;
  std::string processor = "p1";
  json history = json::array();
};

/// A process that went on from a step with another learning rate.
json faster_from(int64_t step) {
  return {{"step", step}, {"changed", {{{"key", "optimizer.learning_rate"}, {"was", "1e-04"}, {"is", "0.5"}}}}};
}

struct Runs {
  Runs() { set_log_level(LogLevel::quiet); }
  std::string make(const std::string& name, const Made& made = {}) {
    const auto tree = ConfigTree::parse(small_run_yaml, "base.yaml", made.set);
    folder.write(name + "/run.yaml", to_yaml(decode<RunConfig>(tree)));
    folder.write(name + "/metrics.jsonl", json{{"step", made.logged}, {"tokens", 7}}.dump() + "\n" +
                                              json{{"step", made.logged}, {"held_out_loss", made.value}}.dump() + "\n");
    folder.write(name + "/provenance.json", json{{"cloze", "0.1.0"},
                                                 {"libtorch", "2.13"},
                                                 {"machine", {{"processor", made.processor}}},
                                                 {"data", {{"tokenizer", made.tokenizer}, {"fingerprint", made.texts}}},
                                                 {"history", made.history}}
                                                .dump());
    json losses = json::object();
    for (const auto& loss : made.losses)
      losses[loss] = {{"sum", {made.value, made.value + 0.1, made.value - 0.1}}, {"count", {1, 1, 1}}};
    if (made.bytes > 0)
      for (auto& loss : losses) loss["bytes"] = {made.bytes, made.bytes, made.bytes};
    const json all{
        {"step", made.step}, {"measured", made.measured}, {"losses", losses}, {"xxh3", hash_hex(losses.dump())}};
    if (made.finished) folder.write(name + "/held_out.json", all.dump());
    question.folders.push_back(folder / name);
    return folder / name;
  }
  StudyReport report() const { return report_of_runs(question); }
  std::string error() const {
    return error_of([&] { report(); });
  }
  TempDir folder;
  RunsQuestion question;
};

/// Two arms of two seeds that differ in the learning rate.
struct TwoArms : Runs {
  TwoArms() {
    make("low-1", {.set = {"train.seed=1"}, .value = 3.0});
    make("high-2", {.set = {"train.seed=2", "optimizer.learning_rate=0.5"}, .value = 3.21});
    make("low-2", {.set = {"train.seed=2", "train.threads=2"}, .value = 3.1});
    make("high-1", {.set = {"train.seed=1", "optimizer.learning_rate=0.5"}, .value = 3.1});
  }
};

}  // namespace

TEST_CASE("runs by hand are grouped by their configs without the seed, and compared by pairs") {
  const auto report = TwoArms().report();
  REQUIRE(report.arms.size() == 2);
  CHECK(report.arms[0].name == "learning_rate=1e-04");
  CHECK(report.arms[1].name == "learning_rate=0.5");
  CHECK(report.arms[1].differs == std::vector<std::string>{"optimizer.learning_rate: 0.5"});
  CHECK(report.metric == "mlm");
  CHECK(report.arms[1].runs.size() == 2);
  CHECK(report.arms[1].difference.mean == Approx(0.105));
  CHECK(report.arms[1].difference.interval);
  CHECK(report.runs[0].command == "cloze pretrain " + report.runs[0].result.folder + "/run.yaml --run " +
                                      report.runs[0].result.folder + "-again");
}

TEST_CASE("runs on different texts are arms, whatever their seeds, and a text is the same wherever it was prepared") {
  Runs runs;
  const auto make = [&](const std::string& name, const std::string& seed, const std::string& tokens,
                        const std::string& texts) {
    runs.make(name, {.set = {"train.seed=" + seed, "data.tokens=" + tokens}, .texts = texts});
  };
  make("war-1", "1", "war", "f1");
  make("war-2", "2", "moved/war", "f1");
  make("other-2", "2", "other", "f2");
  make("other-3", "3", "other", "f2");
  make("anew-1", "1", "war", "f3");  // in the folder of the first
  const auto report = runs.report();
  std::string arms;
  for (const auto& arm : report.arms) arms += concat(arm.name, " ", arm.runs.size(), "\n");
  CHECK(arms == "tokens=war 2\ntokens=other 2\ntokens=war-f3 1\n");
  CHECK(report.arms[1].difference.seeds == 1);  // paired by seed

  Runs mixtures;
  for (const std::string part : {"books", "news"})
    mixtures.make(part,
                  {.set = {"data.tokens=war", "data.mixture=[{tokens: " + part + ", weight: 1}]"}, .texts = part});
  CHECK(mixtures.report().arms.size() == 2);
}

TEST_CASE("the baseline is named by its arm or by one of its folders") {
  TwoArms runs;
  runs.question.baseline = "learning_rate=0.5";
  CHECK(runs.report().arms[1].difference.mean == Approx(-0.105));
  runs.question.baseline = runs.folder / "high-1/";
  CHECK(runs.report().baseline == "learning_rate=0.5");
  runs.question.baseline = "learning_rate=0.05";
  CHECK_THAT(runs.error(), Catch::Contains("--baseline learning_rate=0.05: is no arm of these runs; did you mean "
                                           "'learning_rate=0.5'?"));
}

TEST_CASE("a run whose learning rate was changed on its way is an arm of its own, with the reason") {
  TwoArms runs;
  const std::vector<std::string> high{"optimizer.learning_rate=0.5"};
  const auto with_seed = [&](const std::string& seed) { return std::vector{high.front(), "train.seed=" + seed}; };
  runs.make("high-3", {.set = with_seed("3"), .value = 2, .history = {json{{"step", 0}}, faster_from(40)}});
  runs.make("high-4", {.set = with_seed("4"), .history = {faster_from(0)}});  // from its start
  runs.make("high-1-too", {.set = with_seed("1"), .value = 2, .history = {faster_from(40)}});
  const auto report = runs.report();
  REQUIRE(report.arms.size() == 3);
  CHECK(report.arms[1].runs.size() == 3);
  CHECK(report.arms[2].name == "learning_rate=0.5, changed at step 40");
  CHECK(report.arms[2].runs.size() == 2);
  CHECK(report.arms[2].differs.back() == "changed at step 40 with optimizer.learning_rate 0.5 (was 1e-04)");
  CHECK(std::ranges::count(report.notes,
                           "arm learning_rate=0.5, changed at step 40: with optimizer.learning_rate 0.5 (was 1e-04); "
                           "it is held apart from runs that never changed") == 1);
}

TEST_CASE("a change that was undone before a step was made, or that a run may make, sets no run apart") {
  TwoArms runs;
  auto undone = faster_from(40);
  std::swap(undone["changed"][0]["was"], undone["changed"][0]["is"]);
  const json allowed = {{"step", 60}, {"changed", {{{"key", "train.threads"}, {"was", "1"}, {"is", "2"}}}}};
  runs.make("low-3", {.set = {"train.seed=3"}, .history = {faster_from(40), undone, allowed}});
  const auto report = runs.report();
  CHECK(report.arms.size() == 2);
  for (const auto& note : report.notes) CHECK_THAT(note, !Catch::Contains("changed"));
}

TEST_CASE("a history that is damaged sets no run apart") {
  TwoArms runs;
  const json damaged{1, {{"step", "x"}, {"changed", 3}}, {{"step", 5}, {"changed", {1, {{"key", 5}}}}}};
  runs.make("low-3", {.set = {"train.seed=3"}, .history = damaged});
  runs.make("low-4", {.set = {"train.seed=4"}, .history = {{"step", 1}}});
  CHECK(runs.report().arms.size() == 2);
}

TEST_CASE("an extension of the budget sets a run apart where the steps before it followed the budget") {
  json longer = {{"step", 40}, {"changed", {{{"key", "train.budget.steps"}, {"was", "50"}, {"is", "100"}}}}};
  for (const bool counts : {false, true}) {
    TwoArms runs;
    longer["budget_counts"] = counts;
    runs.make("low-3", {.set = {"train.seed=3"}, .history = {longer}});
    CHECK(runs.report().arms.size() == (counts ? 3 : 2));
  }
}

TEST_CASE("other versions or processors among the runs are a note") {
  TwoArms runs;
  CHECK(runs.report().notes.empty());
  runs.make("low-3", {.set = {"train.seed=3"}, .processor = "p2"});
  const auto report = runs.report();
  REQUIRE(report.notes.size() == 2);
  CHECK_THAT(report.notes[0] + report.notes[1],
             Catch::Contains("is over the 2 seeds that both have") &&
                 Catch::Contains("runs were made by different versions, commits or processors") &&
                 Catch::Contains("learning_rate=1e-04, learning_rate=0.5: cloze 0.1.0, LibTorch 2.13, p1") &&
                 Catch::Contains("; learning_rate=1e-04: cloze 0.1.0, LibTorch 2.13, p2"));
}

TEST_CASE("the floor of runs is that of the metric at their last evaluation") {
  TwoArms runs;
  for (const std::string run : {"low-1", "low-2", "high-1", "high-2"})
    runs.folder.write(
        run + "/metrics.jsonl",
        json{{"step", 100}, {"held_out_loss", 3}, {"held_out", {{"mlm_loss", 3}, {"mlm_baseline_loss", 6.5}}}}.dump() +
            "\n");
  const auto report = runs.report();
  CHECK(report.floor == Approx(6.5));
  CHECK(report.arms[1].runs[0].floor == Approx(6.5));
}

TEST_CASE("arms that differ in many keys are named by their folders") {
  Runs runs;
  runs.make("small-1", {.set = {"train.seed=1"}});
  runs.make("small-2", {.set = {"train.seed=2"}});
  for (const std::string seed : {"1", "2"})
    runs.make("wide/seed-" + seed, {.set = {"train.seed=" + seed, "model.hidden_size=64", "model.intermediate_size=128",
                                            "optimizer.learning_rate=0.5"}});
  const auto report = runs.report();
  CHECK(report.arms[0].name == "small");
  CHECK(report.arms[1].name == "wide");
  CHECK(report.arms[1].differs.size() == 3);
}

TEST_CASE("one config over several seeds is an arm without a comparison") {
  Runs runs;
  runs.make("a-1", {.set = {"train.seed=1"}});
  runs.make("a-2", {.set = {"train.seed=2"}, .value = 4});
  const auto report = runs.report();
  REQUIRE(report.arms.size() == 1);
  CHECK(report.arms[0].summary.mean == Approx(3.5));
  CHECK_THAT(to_html(report), Catch::Contains("What is the held-out mlm loss of a?"));
}

TEST_CASE("arms without a common seed are not compared, which the verdict says") {
  Runs runs;
  runs.make("a", {.set = {"train.seed=1"}});
  runs.make("b", {.set = {"train.seed=2", "optimizer.learning_rate=0.5"}});
  CHECK(runs.report().arms[1].verdict == "no seed in common with the baseline");
}

TEST_CASE("runs that are not at the end of their budget are listed with the reason, not dropped") {
  TwoArms runs;
  const auto cut = runs.make("low-3", {.set = {"train.seed=3"}, .logged = 40, .finished = false});
  runs.make("low-4", {.set = {"train.seed=4", "checkpoint.keep=3"}, .step = 60, .logged = 80});
  const auto early = runs.make("low-5", {.set = {"train.seed=5"}, .step = 70, .logged = 70});
  runs.folder.write("low-5/summary.json", R"({"stopped_by": "patience"})");
  const auto report = runs.report();
  CHECK(report.runs.size() == 7);
  CHECK(report.arms[0].runs.size() == 2);
  REQUIRE(report.notes.size() == 3);
  CHECK_THAT(report.notes[0], Catch::Contains("/3 has not finished: it stands at step 40 of 100; resume it with `cloze "
                                              "pretrain --run " +
                                              cut + " --resume`"));
  CHECK_THAT(report.notes[1],
             Catch::Contains("/4 has not finished: it went on after step 60 and stands at step 80 of 100"));
  CHECK_THAT(report.notes[2], Catch::Contains("it stopped early at step 70 of 100 (evaluation.patience)"));
  CHECK_THAT(to_html(report), Catch::Contains(early));
}

TEST_CASE("a run that ended as diverged is listed as failed, in every form, until it goes on") {
  TwoArms runs;
  const auto folder = runs.make("low-3", {.set = {"train.seed=3"}, .logged = 40, .finished = false});
  const auto log = [&](const json& row) {
    std::ofstream(folder + "/metrics.jsonl", std::ios::app) << row.dump() << "\n";
  };
  log({{"step", 40}, {"diverged", "the training loss at step 40 is 70: training has diverged"}});
  const auto report = runs.report();
  const std::string failed = "/3 failed: the training loss at step 40 is 70: training has diverged";
  CHECK_THAT(report.notes.front(), Catch::Contains(failed));
  for (const auto& form : {to_text(report, 120), to_markdown(report), to_html(report), to_json(report).dump()})
    CHECK_THAT(form, Catch::Contains("training has diverged"));
  CHECK_THAT(to_latex(report), Catch::Contains("failed"));
  CHECK_THAT(to_csv(report), Catch::Contains("failed"));
  log({{"step", 50}, {"tokens", 9}});
  CHECK_THAT(runs.report().notes.front(), Catch::Contains("/3 has not finished: it stands at step 50 of 100"));
}

TEST_CASE("a run whose loss is not finite is listed as failed") {
  TwoArms runs;
  runs.make("low-3", {.set = {"train.seed=3"}, .value = NAN});
  CHECK_THAT(runs.report().notes.front(), Catch::Contains("/3 failed: its held-out loss is not finite"));
}

TEST_CASE("runs by hand that cannot be compared are refused") {
  const auto with = [](const Made& made) {
    TwoArms runs;
    runs.make("other", made);
    return runs.error();
  };
  const std::vector<std::string> third{"train.seed=3"};
  CHECK_THAT(with({.set = third, .tokenizer = "t2"}),
             Catch::Contains("low-1 and ") && Catch::Contains("different tokenizers"));
  CHECK_THAT(with({.set = third, .measured = "mlm, 9 sequences of 32 tokens, packing document, seed 1, tokens abc"}),
             Catch::Contains("so that their losses cannot be compared: by mlm, 3 sequences of 32 tokens"));
  CHECK_THAT(with({.set = third, .losses = {"clm"}}), Catch::Contains("were scored by different losses (mlm; clm)"));
  CHECK_THAT(with({.set = {"train.seed=1", "checkpoint.keep=9"}}),
             Catch::Contains("have the same config, text and seed, so that one run would count twice"));
}

TEST_CASE("runs by hand of different tasks are not compared, and a unit of losses is none of a task's figures") {
  Runs runs;
  runs.make("a", {.set = {"task.name=cats"}});
  runs.question.unit = LossUnit::bits_per_byte;
  CHECK_THAT(runs.error(), Catch::Contains("--unit bits_per_byte: is of losses, and figures of cats are in points"));
  runs.make("b");
  CHECK_THAT(runs.error(), Catch::Contains("are fine-tuned on cats and on no task, so that they have no figure"));
}

TEST_CASE("runs by hand with different tokenizers are compared in bits per byte, each tokenizer an arm") {
  const std::vector<std::string> generative{
      "model={kind: gpt2, hidden_size: 32, num_hidden_layers: 1, num_attention_heads: 2}", "objectives=[{kind: clm}]"};
  const auto with = [&](const std::string& seed, const std::string& tokens, double value, uint64_t bytes) {
    auto set = generative;
    set.push_back("train.seed=" + seed);
    set.push_back("data.tokens=" + tokens);
    return Made{.set = set,
                .measured = "clm, 3 sequences of 32 tokens, packing document, seed 1, tokens " + tokens,
                .losses = {"clm"},
                .value = value,
                .tokenizer = tokens,
                .bytes = bytes};
  };
  Runs runs;
  runs.make("small-1", with("1", "small", 3.0, 400));
  runs.make("large-1", with("1", "large", 3.6, 402));
  runs.make("small-2", with("2", "small", 3.2, 400));
  runs.make("large-2", with("2", "large", 3.7, 402));
  CHECK_THAT(runs.error(), Catch::Contains("have different tokenizers (small and large)") &&
                               Catch::Contains("compare a generative loss in bits per byte") &&
                               Catch::Contains("--unit of `cloze report`"));
  runs.question.unit = LossUnit::bits_per_byte;
  const auto report = runs.report();
  REQUIRE(report.arms.size() == 2);
  CHECK(report.unit == "bits per byte");
  CHECK(report.arms[0].name == "tokens=small");
  CHECK(report.arms[1].differs == std::vector<std::string>{"data.tokens: large"});
  CHECK(report.arms[0].runs[1].value == Approx(3.2 / 400 / std::log(2.0)));
  CHECK(report.arms[1].difference.mean == Approx(((3.6 + 3.7) / 402 - 6.2 / 400) / 2 / std::log(2.0)));
  CHECK(report.arms[1].difference.examples.count == 0);  // the sequences are not the same text

  runs.make("large-3", with("3", "large", 3.7, 500));
  CHECK_THAT(runs.error(), Catch::Contains("were scored on different text, of ") &&
                               Catch::Contains("score all of it (evaluation.sequences)"));
  runs.question.folders.pop_back();
  runs.make("large-4", with("4", "large", 3.7, 0));
  CHECK_THAT(runs.error(), Catch::Contains("has no byte counts, since its tokens were prepared without them"));

  TwoArms masked;
  masked.question.unit = LossUnit::bits_per_byte;
  CHECK_THAT(masked.error(), Catch::Contains("--unit bits_per_byte: mlm predicts a part of the text only; choose a "
                                             "generative loss such as clm with --metric, or compare in nats"));
}

TEST_CASE("a curve ends before a line of the metrics that was cut, and the run counts by its held-out losses") {
  TwoArms runs;
  const auto whole = read_file(runs.folder / "low-1/metrics.jsonl");
  runs.folder.write("low-1/metrics.jsonl", whole.substr(0, whole.size() - 5));
  const auto report = runs.report();
  CHECK(report.arms[0].runs.size() == 2);
  CHECK(report.runs[0].result.folder == runs.folder / "low-1");
  CHECK(report.runs[0].curve.empty());
  CHECK(report.runs[1].curve.size() == 1);
  runs.folder.write("low-1/metrics.jsonl", "");
  CHECK(runs.report().arms[0].runs.size() == 2);
}

TEST_CASE("damaged lines of the metrics are left out with a warning, whatever stands in them") {
  TwoArms runs;
  const std::string evaluated = R"({"step": 90, "tokens": 6, "time": {"budget_share": 0.9}, "held_out_loss": 3.5})";
  const std::string wild = R"({"step": 95, "tokens": 1e300, "time": {"budget_share": 1e300}, "held_out_loss": 3.25})";
  runs.folder.write("low-1/metrics.jsonl", R"({"step": 80, "tok)"
                                           "\n" +
                                               evaluated + "\n" + wild + "\n" +
                                               R"({"step": 1e300, "held_out_loss": 3.0})" + "\n" +
                                               R"({"step": 100, "tokens": 7})" + "\n");
  set_log_file(runs.folder / "log.txt");
  const auto report = runs.report();
  set_log_file("");
  const auto& curve = report.runs[0].curve;
  REQUIRE(curve.size() == 2);
  CHECK(curve[1].step == 95);
  CHECK(curve[1].tokens == 6);
  CHECK(curve[1].fraction == 0.9);
  CHECK_THAT(read_file(runs.folder / "log.txt"),
             Catch::Contains("low-1/metrics.jsonl: 2 damaged lines, the first of them line 1; curve and use"));
}

TEST_CASE("runs of another budget stand beside the others with losses and curves, without a verdict") {
  TwoArms runs;
  for (const std::string seed : {"1", "2"})
    runs.make("short-" + seed, {.set = {"train.seed=" + seed, "train.budget.steps=50"}, .step = 50, .logged = 50});
  const auto report = runs.report();
  REQUIRE(report.arms.size() == 3);
  CHECK(report.arms[1].difference.mean == Approx(0.105));
  CHECK(report.arms[1].difference_curve.mean.size() == 1);
  const auto& other = report.arms[2];
  CHECK(other.runs.size() == 2);
  CHECK(other.curve.mean.size() == 1);
  CHECK(other.difference.seeds == 0);
  CHECK(other.difference_curve.mean.empty());
  CHECK(other.verdict == "no verdict: another budget (50 steps)");
  for (const auto& set : report.tied) CHECK(!contains(set, other.name));
  REQUIRE(report.notes.size() == 1);
  CHECK_THAT(report.notes[0], Catch::Contains("of another budget than " + report.arms[0].name +
                                              " (100 steps): " + other.name + " (50 steps)"));
}

TEST_CASE("of several held-out losses the first that a run is scored by is taken, and the report says so") {
  Runs runs;
  runs.make("a", {.set = {"evaluation.objectives=[{kind: mlm, mlm_probability: 0.4}, {kind: mlm}]"},
                  .losses = {"mlm", "mlm:0.4"}});
  runs.make("b", {.set = {"optimizer.learning_rate=0.5"}, .losses = {"mlm", "mlm:0.4", "nsp"}});
  const auto report = runs.report();
  CHECK(report.metric == "mlm:0.4");
  REQUIRE(report.notes.size() == 1);
  CHECK(report.notes[0] ==
        "compared by mlm:0.4, the first of the held-out losses that all runs have (mlm, mlm:0.4); "
        "--metric names another");
  runs.question.metric = "mlm:0.4";
  CHECK(runs.report().notes.empty());
  runs.question.metric = "mlm";
  CHECK(runs.report().metric == "mlm");
  runs.question.metric = "nsp";
  CHECK_THAT(runs.error(),
             Catch::Contains("--metric nsp: not all runs have this held-out loss; they have mlm, mlm:0.4"));
  runs.question.metric = "mml";
  CHECK_THAT(runs.error(), Catch::Contains("did you mean 'mlm'?"));
}

TEST_CASE("folders without a run, runs given twice and damaged files are refused with their names") {
  TwoArms runs;
  runs.question.folders.push_back(runs.folder / "low-1/");
  CHECK_THAT(runs.error(), Catch::Contains("low-1/: is given twice"));
  runs.question.folders.back() = runs.folder / "nothing";
  CHECK_THAT(runs.error(), Catch::Contains("nothing: is not a run directory (it has no run.yaml)"));
  runs.question.folders.pop_back();
  runs.folder.write("low-1/held_out.json", "{\"losses\": {}");
  CHECK_THAT(runs.error(), Catch::Contains("low-1/held_out.json: is damaged or was edited; remove") &&
                               Catch::Contains("and train the run again"));
  Runs unfinished;
  unfinished.make("a", {.finished = false});
  CHECK_THAT(unfinished.error(),
             Catch::Contains("none of the 1 runs is finished") && Catch::Contains("step 100 of 100"));
}
