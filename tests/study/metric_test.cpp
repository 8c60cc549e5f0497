// What studies are decided by: losses, scores of suites, secondary metrics, parts of the held-out text.
#include "study/measures/metric.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/store/manifest.h"
#include "study/execution/runs.h"
#include "study/costs/costs.h"
#include "study/report/fit_report.h"
#include "tests/study/made_up_study.h"
#include "tests/support/catch.h"

using namespace cloze;
using Catch::Contains;

namespace {

const std::string rates = "arms: {low: {optimizer.learning_rate: 0.1}, high: {optimizer.learning_rate: 0.2}}\n";
const std::string three_seeds = "seeds: 3\nbudget: {steps: 10}\n";

std::string study_by(const std::string& metric) { return rates + three_seeds + "metric: " + metric + "\n"; }

/// A prepared folder of these held-out documents, which the checksum `tokens` stands for, behind a training text.
void write_tokens(const TempDir& folder, const std::string& name, uint64_t documents, uint64_t tokens,
                  uint64_t training = 7, const std::string& tokenizer = "0123456789abcdef") {
  std::filesystem::create_directories(folder / name);
  Manifest manifest;
  manifest.tokenizer_kind = "wordpiece";
  manifest.tokenizer_fingerprint = tokenizer;
  manifest.vocab_size = 4;
  manifest.counts = {1, 1, 1, 1};
  manifest.splits["train"] = {
      {.file = "train-00000.tokens", .bytes = 64, .documents = 9, .sentences = 9, .tokens = 99, .xxh3 = training}};
  manifest.splits["valid"] = {{.file = "valid-00000.tokens",
                               .bytes = 64,
                               .documents = documents,
                               .sentences = documents,
                               .tokens = 10 * documents,
                               .xxh3 = tokens}};
  write_manifest(folder / name, manifest);
}

std::string on_tokens(const Study& study, const std::string& first, const std::string& second) {
  return "arms: {a: {data.tokens: " + (study.folder / first) + "}, b: {data.tokens: " + (study.folder / second) +
         "}}\n" + three_seeds;
}

}  // namespace

TEST_CASE("a study is decided by a figure of a suite, of which more is better, in points") {
  const Study study(study_by("{suite: suites/pairs.jsonl, better_by: 0.5}"));
  study.run();
  const auto report = study.report();
  CHECK(report.unit == "points");
  CHECK(report.metric == "pairs accuracy");
  CHECK(report.arms[1].summary.mean == Approx(70).margin(1));
  CHECK_THAT(report.arms[1].verdict, Contains("better by 4.99 to 5.01 points"));
  CHECK(report.arms[1].difference.examples.count == 40);
  CHECK(report.floor == Approx(50));
  CHECK_THAT(to_text(report, 140), Contains("guessing") && Contains("better by"));
  CHECK_THAT(to_latex(report), Contains("Pairs accuracy in points, higher is better"));
  CHECK_THAT(to_html(report), Contains("Does high raise the pairs accuracy of low?"));
  CHECK(to_json(report)["unit"] == "points");
}

TEST_CASE("the words and epochs that a run has read are those of its summary, whatever decides the study") {
  const Study study(study_by("{suite: pairs, better_by: 1}"));
  study.run();
  const auto path = study.folder / "out/runs/low/seed-1/summary.json";
  auto summary = nlohmann::json::parse(read_file(path));
  summary["words"] = 30;
  summary["epochs"] = 0.5;
  study.folder.write("out/runs/low/seed-1/summary.json", summary.dump());
  const auto run = study.report().arms[0].runs[0];
  CHECK(run.words == 30);
  CHECK(run.epochs == 0.5);
  CHECK_THAT(to_text(study.report(), 100), Contains("differences of 1 point matter"));
}

TEST_CASE("answers of another run are not those of a run, which is asked again") {
  const Study study(study_by("{suite: suites/pairs.jsonl, better_by: 0.5}"));
  study.run();
  const auto whole = to_json(study.report());
  const std::string folder = "out/runs/high/seed-2", path = study.folder / (folder + "/suites.json");
  study.folder.write(folder + "/suites.json", read_file(study.folder / "out/runs/high/seed-1/suites.json"));
  CHECK_THROWS_WITH(study.report(), Catch::StartsWith(path + ": is of another run, with pairs accuracy 0.") &&
                                        Contains(" where summary.json has 0.") && Contains("; run the study again"));
  study.run();
  CHECK(to_json(study.report()) == whole);
}

TEST_CASE("a secondary metric that an arm cannot answer is refused before any run") {
  const Study study(study_by("{objective: mlm}") + "secondary: [{suite: pairs, figure: accurcy}]\n");
  const auto plan = study.stages().compared();
  CHECK_THAT(error_of([&] { check_metrics(plan, {{.suite_metrics = {{"pairs", {"accuracy", "micro_accuracy"}}}}}); }),
             Contains("no such figure; did you mean 'accuracy'?"));
  CHECK_THAT(error_of([&] { check_metrics(plan, {{.suite_metrics = {{"other", {"accuracy"}}}}}); }),
             Contains("calls itself other; name it so"));
}

TEST_CASE("secondary metrics stand in every form of a report, corrected over all of them, and decide nothing") {
  const Study study(study_by("{objective: mlm, better_by: 0.01}") +
                    "secondary: [{suite: pairs}, {objective: 'mlm:0.4'}]\n");
  study.run();
  const auto report = study.report();
  CHECK(report.arms[1].verdict.starts_with("worse by"));
  REQUIRE(report.arms[1].secondary.size() == 2);
  const auto& accuracy = report.arms[1].secondary[0].difference;
  CHECK(accuracy.mean == Approx(5).margin(0.2));
  CHECK(accuracy.interval->low > 4);
  const auto corrected = holm({*accuracy.p, *report.arms[1].secondary[1].difference.p});
  CHECK(*accuracy.p_holm == corrected[0]);
  const std::string title = "Secondary: pairs accuracy";
  CHECK_THAT(to_text(report, 100), Contains(title) && Contains("+5.0"));
  CHECK_THAT(to_markdown(report), Contains(title));
  CHECK_THAT(to_html(report), Contains(title));
  CHECK_THAT(to_latex(report), Contains("pairs accuracy"));
  CHECK_THAT(to_csv(report), Contains("\nsecondary,high,"));
  CHECK(to_json(report)["arms"][1]["secondary"][0]["difference"]["mean"].get<double>() == accuracy.mean);
}

TEST_CASE("answers to suites that were edited are refused with the file, and measured again") {
  const Study study(study_by("{suite: pairs}"));
  study.run();
  study.folder.write("out/runs/low/seed-1/suites.json", R"({"step": 1, "suites": {}, "xxh3": ""})");
  CHECK_THAT(error_of([&] { study.report(); }), Contains("suites.json: is damaged or was edited"));
  study.run();
  CHECK(study.starts("runs/low/seed-1") == "started\nresumed\n");
  CHECK(study.report().arms[0].runs.size() == 3);
}

TEST_CASE("a run that has not answered by a suite is refused with what it has") {
  const Study study(study_by("{suite: pairs}"));
  study.run();
  const auto run = study.folder / "out/runs/low/seed-1";
  const auto error = [&](const SuiteMetric& metric) {
    return error_of([&] { value_of(metric, run, "answer it again"); });
  };
  CHECK_THAT(error({.suite = "other", .name = "accuracy"}),
             Contains("suites.json: has no answers to other; the log of the run says why; answer it again"));
  CHECK_THAT(error({.suite = "pairs", .name = "mrr"}),
             Contains("pairs has no mrr; its figures are accuracy, spearman"));
  std::filesystem::remove(run + "/suites.json");
  CHECK_THAT(error({.suite = "pairs", .name = "accuracy"}),
             Contains("is missing, so that the run cannot be compared by a suite; answer it again"));
}

TEST_CASE("a law of losses is not fitted to a study that a suite decides") {
  const Study study(study_by("{suite: pairs}"));
  CHECK_THAT(error_of([&] { points_of_study(study.folder / "study.yaml", study.folder / "out", SizeCount::all); }),
             Contains("is decided by pairs accuracy, and the law is one of held-out losses"));
}

TEST_CASE("what is tuned is chosen on documents that the verdict never sees") {
  const Study study("arms: {a: {}, b: {optimizer.weight_decay: 0.04}}\n" + three_seeds +
                    "tune: {optimizer.learning_rate: [0.1, 0.2]}\n");
  study.run();
  const auto stages = study.stages();
  const auto& search = stages.plans[*stages.tuning];
  CHECK(search.part == HeldOutPart::development);
  CHECK(stages.compared().part == HeldOutPart::verdict);
  const auto chosen = *finished_result(search, search.runs[0]);
  const auto judged = *finished_result(stages.compared(), stages.compared().runs[0]);
  CHECK(chosen.examples.sum.size() + judged.examples.sum.size() == 1024);
  CHECK(chosen.examples.sum.size() % 2 == 0);  // both examples of a document
  CHECK(documents_in(chosen) + documents_in(judged) == 512);
  CHECK(documents_in(chosen) == Approx(128).margin(30));
  CHECK_THAT(notes_of(study.report()), Contains(concat("was chosen on ", chosen.examples.sum.size(),
                                                       " held-out examples of ", documents_in(chosen), " documents")));
}

TEST_CASE("a secondary figure that has no parts is shown whole beside a verdict on a part") {
  const Study study("arms: {a: {}, b: {optimizer.weight_decay: 0.04}}\n" + three_seeds +
                    "tune: {optimizer.learning_rate: [0.1, 0.2]}\nsecondary: [{suite: pairs, figure: spearman}]\n");
  study.run();
  const auto report = study.report();
  CHECK(report.arms[0].secondary[0].summary.mean == Approx(0.3).margin(0.1));
  CHECK(report.arms[1].secondary[0].difference.examples.count == 0);
}

TEST_CASE("the curve of a run that a task judges is that of its losses, without their floor") {
  const nlohmann::json row{{"held_out_loss", 3.0}, {"held_out", {{"mlm_loss", 2.5}, {"mlm_baseline_loss", 7.0}}}};
  CHECK(curve_value(LossMetric{}, row)->floor == 7);
  CHECK(curve_value(LossMetric{}, row)->value == 2.5);
  const auto point = *curve_value(TaskMetric{.task = "cats"}, row);
  CHECK(point.value == 3);
  CHECK(point.floor == 0);
  CHECK(point.loss == "mlm");
  const nlohmann::json joint{{"held_out_loss", 28.0}, {"held_out", {{"rtd_loss", 0.5}, {"generator_loss", 3.0}}}};
  CHECK(curve_value(TaskMetric{.task = "cats"}, joint)->loss == "generator + rtd");
  CHECK(!curve_value(LossMetric{}, joint));  // which is of other losses
}

TEST_CASE("a part of a value is the quotient of its own sums, and a value without examples has none") {
  const MetricValue value{.value = 2.5,
                          .examples = {.sum = {1, 2, 3, 4}, .count = {1, 1, 1, 1}, .documents = {0, 1, 2, 3}}};
  double sum = 0;
  for (const auto part : {HeldOutPart::development, HeldOutPart::verdict}) {
    double expected = 0, count = 0;
    for (uint64_t e = 0; e < 4; ++e)
      if (is_development(e) == (part == HeldOutPart::development)) {
        expected += static_cast<double>(e) + 1;
        ++count;
      }
    if (count > 0) {
      CHECK(part_of(value, part, "run").value == expected / count);
    }
    sum += count;
  }
  CHECK(sum == 4);
  CHECK(part_of(value, HeldOutPart::whole, "run").value == 2.5);
  CHECK_THAT(error_of([&] { part_of({.value = 1}, HeldOutPart::development, "run"); }),
             Contains("run: has 0 held-out"));
}

TEST_CASE("a search on fewer than 50 documents, or by a figure that has no parts, is refused") {
  const Study study("");
  write_tokens(study.folder, "few", 120, 1);
  write_tokens(study.folder, "many", 400, 2);
  const auto on = [&](const std::string& tokens) {
    study.write(two_arms + three_seeds +
                "tune: {optimizer.learning_rate: [0.1, 0.2]}\nset: {data.tokens: " + (study.folder / tokens) + "}\n");
  };
  on("few");
  CHECK_THAT(study.error(), Contains("of the 120 held-out documents") && Contains("50 are needed"));
  on("many");
  CHECK(study.error().empty());
  const auto stages = study.stages();
  CHECK_THAT(plan_table(stages.plans[0], {}, 1, 100),
             Contains(concat("the verdict does not see: ", stages.plans[0].development, " of 400")));
  study.write(two_arms + three_seeds +
              "tune: {optimizer.learning_rate: [0.1, 0.2]}\nmetric: {suite: wug, figure: spearman}\n");
  CHECK_THAT(study.error(), Contains("wug spearman is no mean of items"));
}

TEST_CASE("arms of other training text are planned where tokenizer and held-out tokens are equal, others are refused") {
  const Study study("");
  write_tokens(study.folder, "a", 60, 1, 7);
  write_tokens(study.folder, "filtered", 60, 1, 8);
  write_tokens(study.folder, "shorter", 59, 2, 7);
  write_tokens(study.folder, "other", 60, 1, 7, "fedcba9876543210");
  study.write(on_tokens(study, "a", "filtered"));
  CHECK(study.error().empty());
  study.write(on_tokens(study, "a", "shorter"));
  CHECK_THAT(study.error(), Contains("arms 'a' (60 held-out documents) and 'b' (59) have different held-out tokens"));
  study.write(on_tokens(study, "a", "other"));
  CHECK_THAT(study.error(), Contains("have different held-out tokens or tokenizers"));
  study.write(on_tokens(study, "a", "other") + "metric: {suite: pairs}\n");
  CHECK(study.error().empty());  // a suite asks the same of any tokenizer
}

TEST_CASE("the evaluation of an arm has what the study leaves to it") {
  const Study study(rates + three_seeds +
                    "set: {evaluation.suites: [x], evaluation.packing: full}\nmetric: {suite: pairs}\n");
  const auto run = study.stages().compared().runs[0].config.evaluation;
  CHECK(run.suites == std::vector<std::string>{"x", "pairs"});
  CHECK(run.packing == RowPacking::full);
}
